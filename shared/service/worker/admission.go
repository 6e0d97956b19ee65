package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/platform/clock"
)

// Guard protects the worker from a platform that ends workers as it sees fit, such
// as one that scales them in.
type Guard interface {
	// Busy protects this worker for at least twice as long as its GuardEvery.
	Busy(ctx context.Context) error
	// Idle ends the protection.
	Idle(ctx context.Context) error
}

// guardRest is the part of GuardEvery for which an idle worker is unprotected.
const guardRest = 5

// admission admits receivers to the queue while the worker is protected.
//
// A worker is protected before it receives, as it cannot know when a job comes.
// Then an idle one would be protected for ever, and scaling in would never end it.
// So it receives in rounds of GuardEvery, and after a round that left nothing in
// flight it rests unprotected for a fifth of that time and takes no job. A job may
// have to wait for that rest, but none is ended with a worker. (A worker that is
// ended all the same, by a spot interruption or a deploy, releases its jobs.)
type admission struct {
	inflight *inflight

	mu sync.Mutex
	// opened is closed when receivers are admitted; nil when nobody waits for that.
	opened chan struct{}
	// round ends when no more is to be received; nil while nobody is admitted.
	round context.Context
	// inside counts the receivers that are receiving; left is closed when the last
	// of them has left, nil when nobody waits for that.
	inside int
	left   chan struct{}
}

// enter waits until jobs may be received, and returns the context to do so with.
// The caller calls leave when what it received is in flight.
//
// Errors: the context's.
func (a *admission) enter(ctx context.Context) (round context.Context, leave func(), err error) {
	for {
		a.mu.Lock()
		if a.round != nil && a.round.Err() == nil {
			a.inside++
			round = a.round
			a.mu.Unlock()
			return round, a.leave, nil
		}
		if a.opened == nil {
			a.opened = make(chan struct{})
		}
		opened := a.opened
		a.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inside--
	if a.inside == 0 && a.left != nil {
		close(a.left)
		a.left = nil
	}
}

// open admits receivers until the context ends.
func (a *admission) open(round context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.round = round
	if a.opened != nil {
		close(a.opened)
		a.opened = nil
	}
}

// close waits until nobody receives any more in a round that has ended.
func (a *admission) close() {
	a.mu.Lock()
	a.round = nil
	var left chan struct{}
	if a.inside > 0 {
		a.left = make(chan struct{})
		left = a.left
	}
	a.mu.Unlock()
	if left != nil {
		<-left
	}
}

// guard opens and closes the admission until the context ends.
//
// A guard that does not answer costs no job its run: the worker then works
// unprotected.
func (a *admission) guard(ctx context.Context, guard Guard, every time.Duration, logger *slog.Logger) {
	call := func(what string, do func(context.Context) error) {
		within, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		if err := do(within); err != nil && ctx.Err() == nil {
			logger.Warn(what, "error", err)
		}
	}
	for ctx.Err() == nil {
		call("guard the worker while it has jobs", guard.Busy)
		round, end := context.WithTimeout(ctx, every)
		a.open(round)
		<-round.Done()
		end()
		a.close()
		if a.inflight.empty() {
			call("let the worker be ended", guard.Idle)
			clock.Wait(ctx, every/guardRest)
		}
	}
}
