package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/panics"
)

// pulse records a run's progress. It cancels the run once the run is no longer current.
type pulse struct {
	mu       sync.Mutex
	fraction float64

	end  context.CancelFunc
	done chan struct{}
}

func (w *Worker) startPulse(
	ctx context.Context, stopRun context.CancelCauseFunc, logger *slog.Logger, j job.Job,
) *pulse {
	ctx, end := context.WithCancel(ctx)
	p := &pulse{fraction: j.Progress, end: end, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		if !panics.Run(logger, "pulse", func() { p.beat(ctx, w, stopRun, logger, j) }) {
			stopRun(lost(errors.New("its progress is no longer being recorded")))
		}
	}()
	return p
}

// stop waits until recording has ended, so that nothing is written after the run.
func (p *pulse) stop() {
	p.end()
	<-p.done
}

// report records progress, which never decreases.
func (p *pulse) report(progress engine.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fraction = max(p.fraction, math.Floor(min(progress.Fraction, 1)*1000)/1000)
}

func (p *pulse) reported() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fraction
}

func (p *pulse) beat(ctx context.Context, w *Worker, stopRun context.CancelCauseFunc, logger *slog.Logger, j job.Job) {
	progress := time.NewTicker(w.config.ProgressEvery)
	defer progress.Stop()
	checkEvery := cmp.Or(w.config.CheckEvery, w.config.Lease/3)
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	recorded, looked := j.Progress, time.Now()
	for {
		look := false
		select {
		case <-ctx.Done():
			return
		case <-progress.C:
		case <-check.C:
			// Check by writing progress, which costs as much as a read and also returns the record's state.
			look = time.Since(looked) >= checkEvery/2
		}
		// Call Progress even if nothing has changed, to detect that the job was cancelled or taken over.
		fraction := p.reported()
		if fraction <= recorded && !look {
			continue
		}
		err := w.config.Runs.Progress(ctx, j.ID, j.Nonce, fraction)
		switch {
		case err == nil:
			recorded, looked = fraction, time.Now()
		case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
			stopRun(lost(err))
			return
		case ctx.Err() == nil:
			logger.Warn("cannot record progress", "error", err)
		}
	}
}
