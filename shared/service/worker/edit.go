package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/contain"
)

// edit does the work of a run and gives the stored result. It notes in stages how
// long each took.
func (l *lane) edit(ctx context.Context, h *held, j job.Job, turn turn, progress func(engine.Progress), stages map[string]time.Duration) (result job.Result, err error) {
	defer contain.Error(&err) // a stranger's file may set off a panic: it costs the run
	m, ok := l.Catalog.Find(j.Model)
	if !ok {
		return result, &engine.Error{Code: job.EngineError, Message: "The model is no longer offered."}
	}
	inputs, err := l.inputs(ctx, h, j)
	if err != nil {
		return result, err
	}
	for stage, took := range inputs.stages {
		stages[stage] = took
	}
	if err := l.runEngine(ctx, inputs.spec, turn, progress, stages); err != nil {
		return result, err
	}
	if l.Prefetch {
		select {
		case turn.storing <- struct{}{}:
			defer func() { <-turn.storing }()
		case <-ctx.Done():
			return result, ctx.Err()
		}
		turn.leave()
	}
	begun := time.Now()
	ctx, cancel := lingering(ctx)
	defer cancel()
	ctx, end := l.beginStage(ctx, stageStore)
	result, err = l.store(ctx, j, m, inputs.spec.Output)
	end(err)
	stages[stageStore] = time.Since(begun)
	result.EnhancedPrompt = inputs.enhanced
	return result, err
}

// inputs gives the job's fetched inputs: those that were fetched ahead, where that
// went well.
func (l *lane) inputs(ctx context.Context, h *held, j job.Job) (*preparation, error) {
	if h.prefetched != nil {
		if h.prefetched.wait(ctx) == nil || ctx.Err() != nil {
			return h.prefetched, ctx.Err()
		}
		h.prefetched.discard()
	}
	h.prefetched = l.prepare(ctx, j)
	return h.prefetched, h.prefetched.wait(ctx)
}

// runEngine lets the engine work.
func (l *lane) runEngine(ctx context.Context, spec engine.Spec, turn turn, progress func(engine.Progress), stages map[string]time.Duration) (err error) {
	ctx, end := l.beginStage(ctx, stageEngine)
	defer func() { end(err) }()
	report := progress
	if l.Prefetch {
		outlook := newOutlook(turn.ask)
		defer outlook.stop()
		report = func(p engine.Progress) {
			outlook.report(p.Fraction)
			progress(p)
		}
	}
	begun := time.Now()
	l.loads[l.name].begin(begun)
	defer func() {
		ended := time.Now()
		l.loads[l.name].end(ended)
		stages[stageEngine] = ended.Sub(begun)
	}()
	return l.Engine.Run(ctx, spec, func(p engine.Progress) {
		if p.Took > 0 {
			stages[stageEngine+"."+p.Stage] = p.Took
		}
		report(p)
	})
}

// lingering gives a context that outlives a drain for a while: an engine's work of
// minutes is not thrown away for the second that storing its result takes. A lost
// lease and the deadline end it at once.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, errLost) && !errors.Is(cause, errOverdue) {
			pause(longer, settleTime)
		}
		cancel()
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// store puts the engine's output under the run's name.
func (w *Worker) store(ctx context.Context, j job.Job, m *catalog.Model, output string) (job.Result, error) {
	file, err := os.Open(output)
	if err != nil {
		return job.Result{}, fmt.Errorf("open the engine's output: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	result := job.Result{Blob: job.ResultBlob(j.ID, j.Nonce), MIME: "video/mp4"}
	if m.Kind == catalog.Image {
		result.MIME = "image/png"
	}
	result.Size, err = w.Blobs.Put(ctx, result.Blob, io.TeeReader(file, hash))
	if err != nil {
		return job.Result{}, fmt.Errorf("store the result: %w", err)
	}
	if result.Size == 0 {
		return job.Result{}, errors.New("the engine's output is empty")
	}
	result.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return result, nil
}
