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

// lease is a received job that is not settled yet. Its holder must stop it, settle its delivery and
// remove it from the jobs in flight.
type lease struct {
	delivery Delivery
	logger   *slog.Logger
	// ctx ends when the worker drains. It ends with errLost when the lease is lost.
	ctx context.Context
	// prefetched holds the inputs fetched before the run, or nil.
	prefetched *preparation
	// thumbnails makes the pictures of the run's result. It may be nil.
	thumbnails *thumbnails
	// previews stores the run's previews, or is nil.
	previews *previews

	end context.CancelCauseFunc
	// stopped is closed when the lease is no longer extended.
	stopped chan struct{}
}

// hold counts a delivery as in flight and extends its lease until it is stopped.
func (w *Worker) hold(ctx context.Context, delivery Delivery) *lease {
	ctx, end := context.WithCancelCause(ctx)
	l := &lease{
		delivery: delivery, logger: w.config.Logger.With("job", delivery.JobID()),
		ctx: ctx, end: end, stopped: make(chan struct{}),
	}
	w.inflight.add(l, w.config.Now())
	// The run's fields are added to the lease's logger later.
	logger := l.logger
	go func() {
		defer close(l.stopped)
		if !panics.Run(logger, "lease", func() { l.keep(w.config.Lease, logger) }) {
			l.end(lost(errors.New("the lease is no longer extended")))
		}
	}()
	return l
}

// keep extends the lease to its full length at intervals, until it is stopped or lost.
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

// stop ends the extensions and any prefetch, and waits for both. They must not touch a delivery
// that is being settled or a folder that is being removed.
func (l *lease) stop() {
	l.end(nil)
	<-l.stopped
	if l.prefetched != nil {
		l.prefetched.discard()
	}
}

var errLost = errors.New("the job no longer belongs to this worker")

func lost(cause error) error { return fmt.Errorf("%w: %w", errLost, cause) }

// inflight is the set of received jobs that are not settled yet.
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

// oldest returns when the oldest job in flight was received. ok is false if no job is in flight.
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
