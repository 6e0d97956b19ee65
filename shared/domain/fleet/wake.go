package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// wakeEvery limits how often a wake is recorded. It is far below MinIdle, so a worker is kept even
// if the latest wake is not recorded.
const wakeEvery = time.Minute

// awakeFor is how long a process relies on its last wake, because ECS limits calls per second. The
// worker is kept for longer than awakeFor and wakeEvery combined.
const awakeFor = 30 * time.Second

// Wake ensures that at least one worker runs, and as many as the queued jobs need. It may be called
// at any time, also concurrently. Within awakeFor of a successful wake it does nothing.
//
// It records the wake first. A check that is stopping the last worker at the same time then finds
// the record and starts a worker again.
func (f *Fleet) Wake(ctx context.Context) (change Change, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Now()
	if age := now.Sub(f.awakeAt); age >= 0 && age < awakeFor {
		return Change{}, nil
	}
	state, err := f.Store.Read(ctx)
	if err == nil && now.Sub(state.WokenAt) >= wakeEvery {
		err = f.Store.Wake(ctx, now)
	}
	if err == nil {
		change, err = f.raise(ctx, 1)
	}
	if err != nil {
		return change, fmt.Errorf("fleet: wake: %w", err)
	}
	f.awakeAt = now
	return change, nil
}

// Rise raises the number of workers to the number that the jobs need. It never lowers the number.
func (f *Fleet) Rise(ctx context.Context) (Change, error) {
	change, err := f.raise(ctx, 0)
	if err != nil {
		return change, fmt.Errorf("fleet: rise: %w", err)
	}
	return change, nil
}

// raise sets the desired number of workers to at least the given number, even if the queues cannot be read. It never
// lowers the number.
func (f *Fleet) raise(ctx context.Context, least int) (change Change, err error) {
	change.From, _, err = f.Service.Tasks(ctx)
	if err != nil {
		return change, err
	}
	change.To = change.From
	var unknown error
	change.Jobs, unknown = f.jobs(ctx)
	need := least
	if unknown == nil {
		need = max(need, f.Rules.need(change.Jobs))
	}
	if need <= change.From {
		return change, unknown
	}
	if err := f.Service.SetDesired(ctx, need); err != nil {
		return change, errors.Join(unknown, err)
	}
	change.To = need
	return change, unknown
}

const (
	// RiseEvery is the interval between checks after the number was raised. They are needed because queue counts lag.
	RiseEvery = 15 * time.Second
	// MostRises limits the number of these checks, so that they end before the next regular check.
	MostRises = 3
)

// Follow repeats Rise until it no longer raises the number, at most MostRises times. The function `wait` returns
// false if the context has ended. Follow returns the combined change.
func (f *Fleet) Follow(ctx context.Context, change Change,
	wait func(context.Context, time.Duration) bool) (Change, error) {
	last := change
	for range MostRises {
		if !last.Rose() || !wait(ctx, RiseEvery) {
			break
		}
		var err error
		if last, err = f.Rise(ctx); err != nil {
			return change, err
		}
		change.Jobs, change.To = last.Jobs, last.To
	}
	return change, nil
}
