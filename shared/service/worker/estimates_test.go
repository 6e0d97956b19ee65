package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/service/worker"
)

// estimator returns the same estimate, in seconds, for every edit without a reference.
type estimator struct {
	script
	mu    sync.Mutex
	takes float64
	err   error
	asked []engine.Question
}

func (e *estimator) Estimates(_ context.Context, asked []engine.Question) ([]*job.Estimate, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = asked
	if e.err != nil {
		return nil, e.err
	}
	estimates := make([]*job.Estimate, len(asked))
	for i, question := range asked {
		if question.Reference {
			continue
		}
		estimates[i] = &job.Estimate{EditKind: question.EditKind}
		for _, length := range question.Lengths {
			estimates[i].Points = append(estimates[i].Points, job.EstimatePoint{Length: length, Takes: e.takes})
		}
	}
	return estimates, nil
}

func (e *estimator) set(takes float64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.takes, e.err = takes, err
}

type board struct {
	mu        sync.Mutex
	published []job.Estimates
}

func (b *board) PublishEstimates(_ context.Context, estimates job.Estimates, _ time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.published = append(b.published, estimates)
	return nil
}

// takes returns the estimate in each publication, in seconds, or -1 if a publication has no estimate.
func (b *board) takes() (seconds []float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, estimates := range b.published {
		took := -1.0
		if estimate, known := estimates.Of(job.EditKind{Model: "gen-2.5", Resolution: "720p"}); known {
			took = estimate.Takes(5 * time.Second).Seconds()
		}
		seconds = append(seconds, took)
	}
	return seconds
}

func estimating(t *testing.T, e engine.Engine) (worker.Estimating, *board) {
	t.Helper()
	known, err := catalog.Default("gen")
	if err != nil {
		t.Fatal(err)
	}
	b := &board{}
	return worker.Estimating{Engine: e, Catalog: known, Publisher: b, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}, b
}

func TestEstimatesArePublishedWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &estimator{err: errors.New("it starts")}
		estimating, b := estimating(t, e)
		ctx, stop := context.WithCancel(t.Context())
		go estimating.Run(ctx)
		for _, step := range []struct {
			takes float64
			err   error
			wait  time.Duration
			want  []float64
		}{
			{0, errors.New("it starts"), 3 * time.Minute, nil},
			{10, nil, 3 * time.Minute, []float64{10}},
			{10.4, nil, 3 * time.Minute, []float64{10}},
			{20, nil, 3 * time.Minute, []float64{10, 20}},
			{0, errors.New("it is unavailable"), time.Hour, []float64{10, 20}},
			{20, nil, 7 * time.Hour, []float64{10, 20, 20}},
		} {
			e.set(step.takes, step.err)
			time.Sleep(step.wait)
			synctest.Wait()
			if got := b.takes(); !slices.Equal(got, step.want) {
				t.Errorf("published %v, want %v", got, step.want)
			}
		}
		stop()
		synctest.Wait()
	})
}

func TestEngineWithoutEstimatesRemovesPublishedOnes(t *testing.T) {
	estimating, b := estimating(t, script(succeed))
	estimating.Run(t.Context()) // returns because the engine has no estimates
	if got := b.takes(); !slices.Equal(got, []float64{-1}) || len(b.published[0]) != 0 {
		t.Errorf("published %v", b.published)
	}
}

func TestEstimatesAreReadForEveryEdit(t *testing.T) {
	e := &estimator{takes: 1}
	estimating, b := estimating(t, e)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		go estimating.Run(ctx)
		synctest.Wait()
		stop()
		synctest.Wait()
	})
	kinds := map[job.EditKind]engine.Question{}
	for _, question := range e.asked {
		kinds[question.EditKind] = question
	}
	if len(kinds) != len(e.asked) {
		t.Error("a question is asked twice")
	}
	edit := kinds[job.EditKind{Model: "gen-2.5", Resolution: "720p", Reference: true}]
	if edit.Size.String() != "1280x720" || edit.FPS != 20 || edit.Lengths[0] != 1 || slices.Max(edit.Lengths) != 300 {
		t.Errorf("asked %+v", edit)
	}
	text := kinds[job.EditKind{Model: "gen-pro-t2v", Resolution: "480p"}]
	if !slices.Equal(text.Lengths, []float64{5}) {
		t.Errorf("asked %+v", text)
	}
	if _, asked := kinds[job.EditKind{Model: "gen-pro-t2v", Resolution: "480p", Reference: true}]; asked {
		t.Error("text to video takes no reference")
	}
	if _, asked := kinds[job.EditKind{Model: "gen-pro-i2v", Resolution: "480p"}]; asked {
		t.Error("engine servers, which know no videos of images, were asked about one")
	}
	image := kinds[job.EditKind{Model: "gen-image-2", Resolution: "480p"}]
	if !slices.Equal(image.Lengths, []float64{0}) || image.Kind != catalog.Image {
		t.Errorf("asked %+v", image)
	}
	for _, estimates := range b.published {
		for _, one := range estimates {
			if err := one.Validate(); err != nil || one.Reference {
				t.Errorf("published %+v: %v", one, err)
			}
		}
	}
}
