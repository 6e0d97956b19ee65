package job_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

// curve estimates 10 s plus 8 s per second of the clip.
func curve() job.Estimate {
	return job.Estimate{EditKind: job.EditKind{Model: "gen-2.5", Resolution: "720p"},
		Points: []job.EstimatePoint{{1, 18}, {5, 50}, {100, 810}}}
}

func TestEstimatesAreInterpolatedAndExtrapolated(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{
		time.Second: 18 * time.Second, 3 * time.Second: 34 * time.Second, 5 * time.Second: 50 * time.Second,
		50 * time.Second: 410 * time.Second, 200 * time.Second: 1610 * time.Second, 500 * time.Millisecond: 14 * time.Second,
	} {
		if got := curve().Takes(length); got.Round(time.Millisecond) != want {
			t.Errorf("%v take %v, want %v", length, got, want)
		}
	}
	image := job.Estimate{Points: []job.EstimatePoint{{0, 3}}}
	if got := image.Takes(0); got != 3*time.Second {
		t.Errorf("an image takes %v", got)
	}
}

func TestLongestClipFinishesInTime(t *testing.T) {
	e, within := curve(), time.Minute
	longest := e.Longest(5*time.Minute, within)
	if longest != 6*time.Second { // a 6 s clip takes 58 s
		t.Errorf("the longest clip is %v, want 10s", longest)
	}
	if e.TooLong(longest, within) || !e.TooLong(longest+time.Second, within) {
		t.Errorf("%v is not the longest clip that ends in time", longest)
	}
	if got := e.Longest(5*time.Minute, time.Second); got != 0 {
		t.Errorf("%v would be done in a second, want 0", got)
	}
}

func TestInvalidEstimatesAreRejected(t *testing.T) {
	for name, change := range map[string]func(*job.Estimate){
		"no points":             func(e *job.Estimate) { e.Points = nil },
		"a negative time":       func(e *job.Estimate) { e.Points[0].Takes = -1 },
		"not a number":          func(e *job.Estimate) { e.Points[1].Takes = math.NaN() },
		"weeks":                 func(e *job.Estimate) { e.Points[1].Takes = 1e7 },
		"a negative length":     func(e *job.Estimate) { e.Points[0].Length = -1 },
		"the same length twice": func(e *job.Estimate) { e.Points[1].Length = 1 },
		"too many points":       func(e *job.Estimate) { e.Points = make([]job.EstimatePoint, 1000) },
	} {
		e := curve()
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		if change(&e); e.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

type published struct {
	reads     int
	estimates job.Estimates
	err       error
}

func (p *published) Estimates(context.Context) (job.Estimates, error) {
	p.reads++
	return p.estimates, p.err
}

func TestServiceCachesEstimates(t *testing.T) {
	now := time.Now()
	store := &published{estimates: job.Estimates{curve()}}
	service := job.NewService(job.Config{Estimates: store, Now: func() time.Time { return now }})
	known := func() bool {
		_, known := service.Estimate(t.Context(), curve().EditKind)
		return known
	}
	for range 2 {
		if !known() || store.reads != 1 {
			t.Errorf("%d reads", store.reads)
		}
	}
	if _, known := service.Estimate(t.Context(), job.EditKind{Model: "gen-2.5", Resolution: "480p"}); known {
		t.Error("another resolution has the same estimate")
	}
	now = now.Add(time.Minute)
	store.err = errors.New("the store is unreachable")
	if !known() || store.reads != 2 {
		t.Errorf("the known estimate was forgotten after %d reads", store.reads)
	}
	now = now.Add(time.Minute)
	store.estimates, store.err = nil, nil
	if known() {
		t.Error("a removed estimate is still known")
	}
	if _, known := job.NewService(job.Config{Now: time.Now}).Estimate(t.Context(), curve().EditKind); known {
		t.Error("an estimate is known without a reader")
	}
}
