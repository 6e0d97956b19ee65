package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// wakeEvery is how often a wake is recorded. It is far below MinIdle, so an unrecorded wake also
// keeps a worker.
const wakeEvery = time.Minute

// awakeFor is how long a process trusts its last wake: each job wakes the fleet, and ECS limits
// calls per second. That wake found a worker and a record at most wakeEvery old, so the worker is
// still kept after both times.
const awakeFor = 30 * time.Second

// Wake ensures that a worker runs, and as many as the queued jobs need. It may be called at any time
// and concurrently. Within awakeFor of a successful wake it does nothing.
//
// It records the wake first: a check that stops the last worker at the same time then finds the record
// and starts one again.
func (f *Fleet) Wake(ctx context.Context) (look Look, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Now()
	if age := now.Sub(f.awakeAt); age >= 0 && age < awakeFor {
		return Look{}, nil
	}
	stamp, err := f.Stamps.Read(ctx)
	if err == nil && now.Sub(stamp.WokenAt) >= wakeEvery {
		err = f.Stamps.Wake(ctx, now)
	}
	if err == nil {
		look, err = f.raise(ctx, 1)
	}
	if err != nil {
		return look, fmt.Errorf("fleet: wake: %w", err)
	}
	f.awakeAt = now
	return look, nil
}

// Rise raises the number of workers to the need of the jobs, and never lowers it.
func (f *Fleet) Rise(ctx context.Context) (Look, error) {
	look, err := f.raise(ctx, 0)
	if err != nil {
		return look, fmt.Errorf("fleet: rise: %w", err)
	}
	return look, nil
}

// raise raises the number of workers to the need of the jobs, and at least to least, even if the
// queues do not answer.
func (f *Fleet) raise(ctx context.Context, least int) (look Look, err error) {
	look.From, _, err = f.Service.Tasks(ctx)
	if err != nil {
		return look, err
	}
	look.To = look.From
	var unknown error
	look.Jobs, unknown = f.jobs(ctx)
	need := least
	if unknown == nil {
		need = max(need, f.Rules.need(look.Jobs))
	}
	if need <= look.From {
		return look, unknown
	}
	if err := f.Service.SetDesired(ctx, need); err != nil {
		return look, errors.Join(unknown, err)
	}
	look.To = need
	return look, unknown
}

const (
	// RiseEvery is the interval of checks after a raise: the first job of a burst wakes the fleet,
	// and queue counts lag.
	RiseEvery = 15 * time.Second
	// MostRises limits the checks, so that they end before the next look.
	MostRises = 3
)

// Follow repeats checks every RiseEvery until one does not raise the number, at most MostRises
// times. wait returns false if the context has ended. It returns all results as one.
func (f *Fleet) Follow(ctx context.Context, look Look, wait func(context.Context, time.Duration) bool) (Look, error) {
	last := look
	for range MostRises {
		if !last.Rose() || !wait(ctx, RiseEvery) {
			break
		}
		var err error
		if last, err = f.Rise(ctx); err != nil {
			return look, err
		}
		look.Jobs, look.To = last.Jobs, last.To
	}
	return look, nil
}
