package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/platform/clock"
)

// Guard protects the worker from a platform that stops workers, for example to scale in.
type Guard interface {
	// Busy protects the worker for at least twice GuardEvery.
	Busy(ctx context.Context) error
	Idle(ctx context.Context) error
}

// An idle worker is unprotected for 1/guardRest of GuardEvery.
const guardRest = 5

// admission admits receivers to the queue while the worker is protected.
//
// A worker must be protected before it receives, because a job may arrive at any time. It receives
// in rounds of GuardEvery. After a round with nothing in flight, it pauses without protection for a
// fifth of that time, so that the platform can scale in.
type admission struct {
	inflight *inflight

	mu sync.Mutex
	// opened is closed when receivers are admitted. It is nil if none are waiting.
	opened chan struct{}
	// round ends when receiving must stop. It is nil if no receivers are admitted.
	round context.Context
	// inside counts the admitted receivers. left, unless nil, is closed when the last of them leaves.
	inside int
	left   chan struct{}
}

// enter waits until jobs may be received. Call leave once the received job is in flight.
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

func (a *admission) open(round context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.round = round
	if a.opened != nil {
		close(a.opened)
		a.opened = nil
	}
}

// close waits until all receivers of an ended round have left.
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

// guard opens and closes the admission. If calls to the guard fail, the worker continues unprotected. A stuck worker
// takes no more jobs and is not protected, so that the platform can replace it.
func (a *admission) guard(
	ctx context.Context, guard Guard, every time.Duration, stuck func() bool, logger *slog.Logger,
) {
	call := func(what string, do func(context.Context) error) {
		within, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		if err := do(within); err != nil && ctx.Err() == nil {
			logger.Warn(what, "error", err)
		}
	}
	for ctx.Err() == nil {
		if !stuck() {
			call("cannot protect the worker from scale-in", guard.Busy)
			round, end := context.WithTimeout(ctx, every)
			a.open(round)
			<-round.Done()
			end()
			a.close()
		}
		if a.inflight.empty() || stuck() {
			call("cannot end the worker's scale-in protection", guard.Idle)
			clock.Wait(ctx, every/guardRest)
		}
	}
}
