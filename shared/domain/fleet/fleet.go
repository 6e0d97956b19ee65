// Package fleet decides how many workers there are to be where they scale to zero.
//
// A wake raises the fleet from none as soon as work is accepted. From then on a
// look, once a minute, compares the jobs in the queues with the workers and
// decides. Nothing else changes the number: metrics of queues lag by minutes, and by
// a quarter of an hour after hours of silence, so what acts on them stops workers
// that were just started.
package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cutroom/shared/domain/job"
)

// Rules bound a fleet.
type Rules struct {
	// Min and Max are how many workers there are at least and at most.
	Min, Max int
	// Backlog is how many jobs there may be for each worker, including those in
	// work, before another one is started.
	Backlog int
	// Idle is how long more workers than needed are kept, and how long a wake holds
	// one without a job.
	Idle time.Duration
}

// Validate reports what is wrong with the rules.
func (r Rules) Validate() error {
	switch {
	case r.Min < 0 || r.Max < 1 || r.Min > r.Max:
		return fmt.Errorf("fleet: from %d to %d workers", r.Min, r.Max)
	case r.Backlog < 1:
		return fmt.Errorf("fleet: %d jobs for each worker", r.Backlog)
	case r.Idle < MinIdle:
		return fmt.Errorf("fleet: idle for %v, at least %v", r.Idle, MinIdle)
	}
	return nil
}

// MinIdle is the least Idle: queues report their length up to a minute late, and a
// container takes minutes to start.
const MinIdle = 5 * time.Minute

// Stamp is what a fleet remembers between looks.
type Stamp struct {
	// WokenAt is the time of the last wake, zero if there was none.
	WokenAt time.Time
	// ExcessSince is when there began to be more workers than needed, zero if
	// there are not.
	ExcessSince time.Time
}

// Decide returns how many workers should run, and when there began to be
// too many of them. Jobs are those that wait or are in work, desired is how many
// workers there are to be so far.
//
// The number rises at once. It falls only after each look of Idle found it too
// high: one look can miss a job that has just been accepted.
func (r Rules) Decide(now time.Time, jobs, desired int, s Stamp) (count int, excessSince time.Time) {
	need := r.clamp((max(jobs, 0) + r.Backlog - 1) / r.Backlog)
	held := need
	if !s.WokenAt.IsZero() && now.Sub(s.WokenAt) < r.Idle {
		held = r.clamp(max(need, 1))
	}
	if need >= desired {
		return held, time.Time{}
	}
	excessSince = s.ExcessSince
	if excessSince.IsZero() || excessSince.After(now) {
		excessSince = now
	}
	count = min(desired, r.Max)
	if now.Sub(excessSince) >= r.Idle {
		count = held
	}
	if count == need {
		excessSince = time.Time{}
	}
	return count, excessSince
}

func (r Rules) clamp(n int) int { return min(max(n, r.Min), r.Max) }

// Stamps keeps the stamp of a fleet.
type Stamps interface {
	// Read returns the stamp as it is now, by a consistent read.
	//
	// Errors: fault.Unavailable.
	Read(ctx context.Context) (Stamp, error)
	// Wake records a wake. An earlier time than the recorded one changes nothing.
	//
	// Errors: fault.Unavailable.
	Wake(ctx context.Context, at time.Time) error
	// SetExcess records when there began to be too many workers; zero for none.
	//
	// Errors: fault.Unavailable.
	SetExcess(ctx context.Context, since time.Time) error
}

// Lengths reports how long the queues are.
type Lengths interface {
	// Length returns about how many jobs of a lane wait or are in work.
	Length(ctx context.Context, lane job.Lane) (int, error)
}

// Service runs the workers.
type Service interface {
	// Desired returns how many workers there are to be.
	Desired(ctx context.Context) (int, error)
	// SetDesired sets how many there are to be. A worker that is busy is not stopped.
	SetDesired(ctx context.Context, n int) error
}

// Fleet is the workers of one service.
type Fleet struct {
	Rules   Rules
	Stamps  Stamps
	Lengths Lengths
	Service Service
	Now     func() time.Time

	mu sync.Mutex
	// awakeAt is when a wake last found that there was to be a worker.
	awakeAt time.Time
}

// wakeEvery is how old a recorded wake may be for another one not to be recorded.
// It is far below MinIdle, so that a wake that is not recorded is held as well.
const wakeEvery = time.Minute

// awakeFor is for how long a wake trusts the last one of its process: each job wakes, and
// ECS takes few questions a second. The last one found a worker, and a recorded wake that
// was at most wakeEvery old; after both times together that wake still holds the worker.
const awakeFor = 30 * time.Second

// Wake ensures that there is a worker, and reports whether there was to be none. It
// may be called at any time and by many. Within awakeFor of one that succeeded it asks
// nobody.
//
// The wake is recorded first: a look that stops the last worker at the same time
// finds it afterwards and starts one again.
func (f *Fleet) Wake(ctx context.Context) (woken bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Now()
	if age := now.Sub(f.awakeAt); age >= 0 && age < awakeFor {
		return false, nil
	}
	if woken, err = f.wake(ctx, now); err == nil {
		f.awakeAt = now
	}
	return woken, err
}

func (f *Fleet) wake(ctx context.Context, now time.Time) (woken bool, err error) {
	stamp, err := f.Stamps.Read(ctx)
	if err != nil {
		return false, fmt.Errorf("fleet: wake: %w", err)
	}
	if now.Sub(stamp.WokenAt) >= wakeEvery {
		if err := f.Stamps.Wake(ctx, now); err != nil {
			return false, fmt.Errorf("fleet: wake: %w", err)
		}
	}
	desired, err := f.Service.Desired(ctx)
	if err != nil {
		return false, fmt.Errorf("fleet: wake: %w", err)
	}
	if desired > 0 {
		return false, nil
	}
	if err := f.Service.SetDesired(ctx, 1); err != nil {
		return false, fmt.Errorf("fleet: wake: %w", err)
	}
	return true, nil
}

// Look is what a look found and decided.
type Look struct {
	// Jobs wait or are in work; workers were to be From, and are to be To.
	Jobs, From, To int
}

// Look sets how many workers there are to be. If anything cannot be read, it changes
// nothing.
func (f *Fleet) Look(ctx context.Context) (Look, error) {
	var (
		look Look
		fail = func(err error) (Look, error) { return look, fmt.Errorf("fleet: look: %w", err) }
	)
	stamp, err := f.Stamps.Read(ctx)
	if err != nil {
		return fail(err)
	}
	for _, lane := range []job.Lane{job.VideoLane, job.ImageLane} {
		n, err := f.Lengths.Length(ctx, lane)
		if err != nil {
			return fail(err)
		}
		look.Jobs += n
	}
	if look.From, err = f.Service.Desired(ctx); err != nil {
		return fail(err)
	}
	count, excess := f.Rules.Decide(f.Now(), look.Jobs, look.From, stamp)
	look.To = look.From
	if !excess.Equal(stamp.ExcessSince) {
		if err := f.Stamps.SetExcess(ctx, excess); err != nil {
			return fail(err)
		}
	}
	if count == look.From {
		return look, nil
	}
	if err := f.Service.SetDesired(ctx, count); err != nil {
		return fail(err)
	}
	look.To = count
	if count > 0 {
		return look, nil
	}
	// A wake between the look and now saw the last worker and left it at that.
	latest, err := f.Stamps.Read(ctx)
	if err != nil {
		return fail(err)
	}
	if latest.WokenAt.After(stamp.WokenAt) {
		if err := f.Service.SetDesired(ctx, 1); err != nil {
			return fail(err)
		}
		look.To = 1
	}
	return look, nil
}
