package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/contain"
)

// held is a job in the worker's hands, from its receipt to its settlement.
// Whoever has it settles it, after letGo, and removes it from the worker's hands.
type held struct {
	delivery Delivery
	logger   *slog.Logger
	// ctx ends with the worker's drain, and with errLost when the lease is lost.
	ctx context.Context
	// prefetched is what was fetched before the run; nil when nothing was.
	prefetched *preparation

	end  context.CancelCauseFunc
	kept chan struct{}
}

// hold takes a delivery in hand and keeps its lease.
func (w *Worker) hold(ctx context.Context, delivery Delivery) *held {
	ctx, end := context.WithCancelCause(ctx)
	h := &held{delivery: delivery, logger: w.Logger.With("job", delivery.JobID()), ctx: ctx, end: end, kept: make(chan struct{})}
	w.hands.add(h, w.Now())
	go func() {
		defer close(h.kept)
		if !contain.Run(h.logger, "lease", func() { h.keepLease(w.Lease) }) {
			h.end(lost(errors.New("the lease is kept no more")))
		}
	}()
	return h
}

// keepLease extends the lease until the job is let go or the lease is lost.
func (h *held) keepLease(lease time.Duration) {
	ticker := time.NewTicker(lease / 3)
	defer ticker.Stop()
	until := time.Now().Add(lease)
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-ticker.C:
		}
		begun := time.Now()
		err := h.delivery.Extend(h.ctx, lease)
		switch {
		case err == nil:
			until = begun.Add(lease)
		case h.ctx.Err() != nil:
			return
		case fault.Is(err, fault.Conflict):
			h.end(lost(err))
			return
		case time.Now().After(until):
			h.end(lost(errors.Join(errors.New("the lease ran out"), err)))
			return
		default:
			h.logger.Warn("extend the lease", "error", err)
		}
	}
}

// letGo ends what goes on beside the job, and waits for it: nothing may touch a
// delivery that is being settled, nor a folder that is being removed.
func (h *held) letGo() {
	h.end(nil)
	<-h.kept
	if h.prefetched != nil {
		h.prefetched.discard()
	}
}

var errLost = errors.New("the job is no longer this worker's")

func lost(cause error) error { return fmt.Errorf("%w: %w", errLost, cause) }

// hands are the jobs that a worker has in hand.
type hands struct {
	mu    sync.Mutex
	since map[*held]time.Time
}

func newHands() *hands { return &hands{since: map[*held]time.Time{}} }

func (s *hands) add(h *held, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since[h] = now
}

func (s *hands) remove(h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, h)
}

func (s *hands) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.since) == 0
}

// oldest tells since when the job that is longest in hand is.
func (s *hands) oldest() (since time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.since {
		if !ok || t.Before(since) {
			since, ok = t, true
		}
	}
	return since, ok
}
