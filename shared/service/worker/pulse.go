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
	"cutroom/shared/platform/contain"
)

// pulse keeps a run visible: it records progress, and ends the run's context when
// the run is no longer the job's own.
type pulse struct {
	mu       sync.Mutex
	fraction float64

	end  context.CancelFunc
	done chan struct{}
}

// startPulse begins to beat; the caller stops it.
func (w *Worker) startPulse(ctx context.Context, stopRun context.CancelCauseFunc, logger *slog.Logger, j job.Job) *pulse {
	ctx, end := context.WithCancel(ctx)
	p := &pulse{fraction: j.Progress, end: end, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		if !contain.Run(logger, "pulse", func() { p.beat(ctx, w, stopRun, logger, j) }) {
			stopRun(lost(errors.New("its progress is recorded no more")))
		}
	}()
	return p
}

// stop ends the beat and waits for it, so that no write follows the run's end.
func (p *pulse) stop() {
	p.end()
	<-p.done
}

// report notes how far the engine is; it never falls.
func (p *pulse) report(progress engine.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// To the thousandth: more digits tell nobody more.
	p.fraction = max(p.fraction, math.Floor(min(progress.Fraction, 1)*1000)/1000)
}

func (p *pulse) reported() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fraction
}

func (p *pulse) beat(ctx context.Context, w *Worker, stopRun context.CancelCauseFunc, logger *slog.Logger, j job.Job) {
	progress := time.NewTicker(w.ProgressEvery)
	defer progress.Stop()
	checkEvery := cmp.Or(w.CheckEvery, w.Lease/3)
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
			// A write of progress has looked already: each costs the same.
			look = time.Since(looked) >= checkEvery/2
		}
		// The record is looked at also when there is nothing to write: so a run
		// whose job was cancelled or taken over learns of it.
		fraction := p.reported()
		if fraction <= recorded && !look {
			continue
		}
		err := w.Runs.Progress(ctx, j.ID, j.Nonce, fraction)
		switch {
		case err == nil:
			recorded, looked = fraction, time.Now()
		case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
			stopRun(lost(err))
			return
		case ctx.Err() == nil:
			logger.Warn("record progress", "error", err)
		}
	}
}
