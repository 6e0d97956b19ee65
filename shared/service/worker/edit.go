package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/panics"
)

// edit does the work of a run. It stores the duration of each stage in the map stages.
func (l *lane) edit(
	ctx context.Context, lease *lease, j job.Job, slot slot, progress func(engine.Progress),
	stages map[string]time.Duration,
) (result job.Result, err error) {
	defer panics.Error(&err) // a hostile file that causes a panic must fail only this run
	inputs, err := l.inputs(ctx, lease, j)
	if err != nil {
		return result, err
	}
	for stage, took := range inputs.stages {
		stages[stage] = took
	}
	inputs.spec.Remaining = max(0, j.Deadline.Sub(l.worker.config.Now())-deadlineSlack)
	inputs.spec.PreviewEvery, inputs.spec.Free = l.worker.config.PreviewEvery, l.worker.config.Free
	outcome, err := l.runEngine(ctx, inputs.spec, slot, progress, stages)
	if err != nil {
		return result, err
	}
	if outcome.Size != (catalog.Size{}) {
		if most := j.Request.Length + slack(j.Request.Length); len(j.Holds) > 0 && j.Request.Length > 0 && outcome.Duration > most {
			return result, engine.InvalidInput(nil, "The result is %.1f s long, but its budget reserved %.1f s.",
				outcome.Duration.Seconds(), j.Request.Length.Seconds())
		}
		inputs.spec.Size, inputs.spec.Duration = outcome.Size, outcome.Duration
	}
	if l.worker.config.Prefetch {
		select {
		case slot.storing <- struct{}{}:
			defer func() { <-slot.storing }()
		case <-ctx.Done():
			return result, ctx.Err()
		}
		slot.free()
	}
	ctx, cancel := lingering(ctx)
	defer cancel()
	signed, err := l.worker.sign(ctx, &inputs.spec, outcome, stages)
	if err != nil {
		return result, err
	}
	begun := time.Now()
	lease.thumbnails = l.worker.beginThumbnails(lease, j, inputs, outcome.Thumbnails)
	ctx, end := l.worker.beginStage(ctx, stageStore)
	result, err = l.worker.store(ctx, j, inputs.spec)
	end(err)
	stages[stageStore] = time.Since(begun)
	result.Credentials = signed
	result.EnhancedPrompt = inputs.enhanced
	result.Engine, result.Understood, result.Notice = outcome.Engine, outcome.Understood, outcome.Notice
	if data := inputs.spec.Data; data != nil && data.Info.SoundLost {
		result.Notice = strings.TrimSpace(result.Notice + " The result has no sound, because the sound of the clip cannot be decoded.")
	}
	return result, err
}

// inputs returns the job's inputs. It fetches them unless they were prefetched.
func (l *lane) inputs(ctx context.Context, lease *lease, j job.Job) (*preparation, error) {
	if lease.prefetched != nil {
		if lease.prefetched.wait(ctx) == nil || ctx.Err() != nil {
			return lease.prefetched, ctx.Err()
		}
		lease.prefetched.discard()
	}
	lease.prefetched = l.worker.prepare(ctx, j)
	return lease.prefetched, lease.prefetched.wait(ctx)
}

func (l *lane) runEngine(
	ctx context.Context, spec engine.Spec, slot slot, progress func(engine.Progress), stages map[string]time.Duration,
) (outcome engine.Outcome, err error) {
	ctx, end := l.worker.beginStage(ctx, stageEngine)
	defer func() { end(err) }()
	report := progress
	if l.worker.config.Prefetch {
		estimate := newEstimate(slot.requestNext)
		defer estimate.stop()
		report = func(p engine.Progress) {
			estimate.report(p.Fraction)
			progress(p)
		}
	}
	begun := time.Now()
	l.worker.loads[l.name].begin(begun)
	defer func() {
		ended := time.Now()
		l.worker.loads[l.name].end(ended)
		stages[stageEngine] = ended.Sub(begun)
	}()
	return l.worker.config.Engine.Run(ctx, spec, func(p engine.Progress) {
		if p.Took > 0 {
			stages[stageEngine+"."+p.Stage] = p.Took
		}
		report(p)
	})
}

// lingering returns a context in which a result can be stored. It outlives a drain by a short time,
// but ends immediately if the lease is lost or the deadline passes.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, errLost) && !errors.Is(cause, errOverdue) {
			clock.Wait(longer, settleTime)
		}
		cancel()
	})
	return longer, func() {
		stop()
		cancel()
	}
}

func resultMIME(kind catalog.Kind) string {
	if kind == catalog.Image {
		return "image/png"
	}
	return "video/mp4"
}

func (w *Worker) store(ctx context.Context, j job.Job, spec engine.Spec) (job.Result, error) {
	file, err := engine.OpenRegular(spec.Output)
	if err != nil {
		return job.Result{}, fmt.Errorf("open the engine's output: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	result := job.Result{
		Blob: j.ResultBlob(), MIME: resultMIME(spec.Kind),
		Width: spec.Size.Width, Height: spec.Size.Height, Duration: spec.Duration,
	}
	result.Size, err = w.config.Blobs.Put(ctx, result.Blob, io.TeeReader(file, hash))
	if err != nil {
		return job.Result{}, fmt.Errorf("store the result: %w", err)
	}
	if result.Size == 0 {
		return job.Result{}, errors.New("the engine's output is empty")
	}
	result.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return result, nil
}
