package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/panics"
)

// lease is an unsettled job. Its holder must stop the lease, settle the delivery, and remove the lease from inflight.
type lease struct {
	delivery Delivery
	logger   *slog.Logger
	// ctx ends when the worker drains. If the lease is lost, it ends with errLost.
	ctx        context.Context
	prefetched *preparation
	thumbnails *thumbnails
	previews   *previews

	end     context.CancelCauseFunc
	stopped chan struct{}
}

// hold registers a delivery as in flight and keeps extending its lease.
func (w *Worker) hold(ctx context.Context, delivery Delivery) *lease {
	ctx, end := context.WithCancelCause(ctx)
	l := &lease{
		delivery: delivery, logger: w.config.Logger.With("job", delivery.JobID()),
		ctx: ctx, end: end, stopped: make(chan struct{}),
	}
	w.inflight.add(l, w.config.Now())
	// Copy the logger, because l.logger is replaced when the run starts.
	logger := l.logger
	go func() {
		defer close(l.stopped)
		if !panics.Run(logger, "lease", func() { l.keep(w.config.Lease, logger) }) {
			l.end(lost(errors.New("the lease is no longer being extended")))
		}
	}()
	return l
}

// keep extends the lease at intervals, until it is stopped or lost.
func (l *lease) keep(length time.Duration, logger *slog.Logger) {
	ticker := time.NewTicker(length / 3)
	defer ticker.Stop()
	until := time.Now().Add(length)
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-ticker.C:
		}
		begun := time.Now()
		err := l.delivery.Extend(l.ctx, length)
		switch {
		case err == nil:
			until = begun.Add(length)
		case l.ctx.Err() != nil:
			return
		case fault.Is(err, fault.Conflict):
			l.end(lost(err))
			return
		case time.Now().After(until):
			l.end(lost(errors.Join(errors.New("the lease ran out"), err)))
			return
		default:
			logger.Warn("cannot extend the lease", "error", err)
		}
	}
}

// stop stops extending the lease and prefetching, and waits until both have ended.
func (l *lease) stop() {
	l.end(nil)
	<-l.stopped
	if l.prefetched != nil {
		l.prefetched.discard()
	}
}

var errLost = errors.New("the job no longer belongs to this worker")

func lost(cause error) error { return fmt.Errorf("%w: %w", errLost, cause) }

type inflight struct {
	mu    sync.Mutex
	since map[*lease]time.Time
}

func (f *inflight) add(l *lease, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since[l] = now
}

func (f *inflight) remove(l *lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, l)
}

func (f *inflight) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.since) == 0
}

// oldest returns when the oldest job in flight was received. ok is false if there is no job.
func (f *inflight) oldest() (since time.Time, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.since {
		if !ok || t.Before(since) {
			since, ok = t, true
		}
	}
	return since, ok
}
