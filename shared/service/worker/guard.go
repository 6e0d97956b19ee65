package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Guard keeps a platform that ends workers as it sees fit, such as one that scales
// them in, from ending one that has a job.
type Guard interface {
	// Busy keeps this worker from being ended, for at least twice as long as the
	// worker's GuardEvery.
	Busy(ctx context.Context) error
	// Idle lets it be ended.
	Idle(ctx context.Context) error
}

// guardRest is the part of GuardEvery for which an idle worker may be ended.
const guardRest = 5

// gate lets receivers receive while the worker is guarded.
//
// A worker is guarded before it receives, as it cannot know when a job comes. So
// an idle one would be guarded for ever, and scaling in would never end it: it
// receives in rounds of GuardEvery, and after one that left nothing in hand it
// rests unguarded for a fifth of that, in which it takes no job. A job may so wait
// for that rest; none is ended with a worker. (A worker that is ended all the
// same, by a spot interruption or a deploy, hands its jobs back.)
type gate struct {
	hands *hands

	mu sync.Mutex
	// opened is closed while receivers may pass, nil when nobody waits for that.
	opened chan struct{}
	// round ends when no more is to be received; nil while the gate is closed.
	round context.Context
	// inside counts who receives; left is closed when the last has left, nil when
	// nobody waits for that.
	inside int
	left   chan struct{}
}

// enter waits until jobs may be received, and gives the context to do so. The
// caller leaves when it has received, and has what it received in hand.
//
// Errors: the context's.
func (g *gate) enter(ctx context.Context) (round context.Context, leave func(), err error) {
	for {
		g.mu.Lock()
		if g.round != nil && g.round.Err() == nil {
			g.inside++
			round = g.round
			g.mu.Unlock()
			return round, g.leave, nil
		}
		if g.opened == nil {
			g.opened = make(chan struct{})
		}
		opened := g.opened
		g.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.left != nil {
		close(g.left)
		g.left = nil
	}
}

// open lets receivers pass until the context ends.
func (g *gate) open(round context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.round = round
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// close waits until nobody receives any more in a round that has ended.
func (g *gate) close() {
	g.mu.Lock()
	g.round = nil
	var left chan struct{}
	if g.inside > 0 {
		g.left = make(chan struct{})
		left = g.left
	}
	g.mu.Unlock()
	if left != nil {
		<-left
	}
}

// guard opens and closes the gate until the context ends.
//
// A guard that does not answer costs no job its run: then the worker works
// unguarded.
func (g *gate) guard(ctx context.Context, guard Guard, every time.Duration, logger *slog.Logger) {
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
		g.open(round)
		<-round.Done()
		end()
		g.close()
		if g.hands.empty() {
			call("let the worker be ended", guard.Idle)
			pause(ctx, every/guardRest)
		}
	}
}
