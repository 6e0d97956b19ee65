package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// wakeEvery is how old a recorded wake may be for another one not to be recorded.
// It is far below MinIdle, so that a wake that is not recorded is held as well.
const wakeEvery = time.Minute

// awakeFor is for how long a wake trusts the last one of its process: each job wakes, and
// ECS takes few questions a second. The last one found a worker, and a recorded wake that
// was at most wakeEvery old; after both times together that wake still holds the worker.
const awakeFor = 30 * time.Second

// Wake ensures that there is a worker, and as many as the jobs take that the queues tell of.
// It may be called at any time and by many. Within awakeFor of one that succeeded it asks
// nobody.
//
// The wake is recorded first: a look that stops the last worker at the same time
// finds it afterwards and starts one again.
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

// Rise raises the number of workers to what the jobs take, and never lowers it.
func (f *Fleet) Rise(ctx context.Context) (Look, error) {
	look, err := f.raise(ctx, 0)
	if err != nil {
		return look, fmt.Errorf("fleet: rise: %w", err)
	}
	return look, nil
}

// raise raises the number of workers to what the jobs take, and to least in any case: also
// if the queues do not answer.
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
	// RiseEvery is how long after the number was raised it is looked again: a burst is told
	// of by its first job, and the counts of queues come late.
	RiseEvery = 15 * time.Second
	// MostRises is how often, so that it ends within the minute after which a look comes.
	MostRises = 3
)

// Follow looks again RiseEvery after a look that raised the number, until one does not, at
// most MostRises times. Wait reports whether the context still holds. It returns all looks
// as one.
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
