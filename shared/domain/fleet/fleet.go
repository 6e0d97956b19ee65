// Package fleet decides how many workers run in a deployment that scales to zero.
//
// As soon as work is accepted, a wake raises the number of workers. Once a minute, a check compares the queued jobs
// with the workers. Only a check lowers the number. After the number is raised, more checks follow within the minute.
// Nothing else may change the number. Queue metrics lag by up to a quarter of an hour, so autoscaling on them would
// stop workers that have just started.
package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cutroom/shared/domain/job"
)

type Rules struct {
	Min, Max int
	// Backlog is the number of jobs per worker, including running jobs, above which another worker starts.
	Backlog int
	// Idle is how long surplus workers are kept, and how long a worker without a job is kept after a wake.
	Idle time.Duration
}

func (r Rules) Validate() error {
	switch {
	case r.Min < 0 || r.Max < 1 || r.Min > r.Max:
		return fmt.Errorf("fleet: invalid limits: min %d and max %d workers", r.Min, r.Max)
	case r.Backlog < 1:
		return fmt.Errorf("fleet: the backlog per worker must be at least 1, not %d", r.Backlog)
	case r.Idle < MinIdle:
		return fmt.Errorf("fleet: the idle time is %v, but must be at least %v", r.Idle, MinIdle)
	}
	return nil
}

// MinIdle allows for queue lengths that lag by a minute and containers that take minutes to start.
const MinIdle = 5 * time.Minute

type State struct {
	WokenAt     time.Time // the last wake, or zero
	ExcessSince time.Time // when the number of workers became too high, or zero
	Fleet       job.Fleet // the workers at the last check, used for job admission
}

// Decide returns the number of workers that should run, and the time when the current number became too high. jobs is
// the number of waiting and running jobs.
//
// The number rises immediately. It falls only if every check during the period Idle has found it too high, because a
// single check can miss a job that was just accepted.
func (r Rules) Decide(now time.Time, jobs, desired int, s State) (count int, excessSince time.Time) {
	need := r.need(jobs)
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

func (r Rules) need(jobs int) int { return r.clamp((max(jobs, 0) + r.Backlog - 1) / r.Backlog) }
func (r Rules) clamp(n int) int   { return min(max(n, r.Min), r.Max) }

// see returns the state of the workers that is used for job admission.
func (r Rules) see(now time.Time, running, wanted int, s State) job.Fleet {
	last, seen := s.Fleet, s.Fleet
	seen.SeenAt, seen.Running, seen.Wanted, seen.Most = now, running, wanted, r.Max
	if wanted > last.Wanted {
		seen.WantedSince = now
		if last.Wanted == 0 && s.WokenAt.After(last.SeenAt) && s.WokenAt.Before(now) {
			seen.WantedSince = s.WokenAt // the wake raised the number
		}
	}
	switch {
	case running >= wanted:
		seen.ShortSince = time.Time{}
		// All workers have started. The last start took this long.
		if running > last.Running && !last.ShortSince.IsZero() && !last.WantedSince.IsZero() {
			seen.StartTime = learn(last.Starts(), now.Sub(last.WantedSince))
		}
	case last.ShortSince.IsZero() && wanted > last.Wanted:
		seen.ShortSince = seen.WantedSince
	case last.ShortSince.IsZero():
		// Workers were lost, for example in a deployment. The time until they are replaced says nothing about the
		// startup time.
		seen.ShortSince, seen.WantedSince = now, time.Time{}
	case running > last.Running:
		seen.ShortSince = now
	}
	return seen
}

// learnAtOnce limits how much one start can raise the expected startup time. A start that takes longer was probably
// waiting for hardware. If the fleet has really become slower, repeated starts raise the time further.
const learnAtOnce = 4 * time.Minute

// learn updates the expected startup time, which rises fast and falls slowly.
func learn(known, took time.Duration) time.Duration {
	took = min(max(took, 0), known+learnAtOnce, job.MaxAge)
	return max(took, (3*known+took)/4)
}

// seenEvery limits the age of the recorded state while workers run.
const seenEvery = 5 * time.Minute

// worthRecording reports whether the state must be written. Nothing is written while no workers run or are wanted.
func worthRecording(seen, last job.Fleet) bool {
	someone := seen.Running > 0 || seen.Wanted > 0
	if last.SeenAt.IsZero() || someone && seen.SeenAt.Sub(last.SeenAt).Abs() >= seenEvery {
		return true
	}
	last.SeenAt = seen.SeenAt
	return seen != last
}

type Store interface {
	// Read returns the current state from a consistent read.
	//
	// Errors: fault.Unavailable.
	Read(ctx context.Context) (State, error)
	// Wake records the time of a wake. A time before the recorded time is ignored.
	//
	// Errors: fault.Unavailable.
	Wake(ctx context.Context, at time.Time) error
	// Saw records the workers' state, and when their number became excessive (zero if it is not excessive).
	//
	// Errors: fault.Unavailable.
	Saw(ctx context.Context, excessSince time.Time, seen job.Fleet) error
}

type Lengths interface {
	// Length returns the approximate number of a lane's waiting and running jobs.
	Length(ctx context.Context, lane job.Lane) (int, error)
}

type Service interface {
	Tasks(ctx context.Context) (desired, running int, err error)
	// SetDesired sets the desired number of workers. It does not stop busy workers.
	SetDesired(ctx context.Context, n int) error
}

type Fleet struct {
	Rules   Rules
	Store   Store
	Lengths Lengths
	Service Service
	Now     func() time.Time

	mu      sync.Mutex
	awakeAt time.Time
}

type Change struct {
	// Jobs is the number of waiting and running jobs. From and To are numbers of workers.
	Jobs, From, To int
}

func (l Change) Rose() bool { return l.To > l.From }

func (f *Fleet) jobs(ctx context.Context) (jobs int, err error) {
	for _, lane := range []job.Lane{job.VideoLane, job.ImageLane} {
		n, err := f.Lengths.Length(ctx, lane)
		if err != nil {
			return 0, err
		}
		jobs += n
	}
	return jobs, nil
}

// Check sets the desired number of workers. If it cannot read the current state, it changes nothing.
func (f *Fleet) Check(ctx context.Context) (Change, error) {
	var (
		change Change
		fail   = func(err error) (Change, error) { return change, fmt.Errorf("fleet: check: %w", err) }
	)
	state, err := f.Store.Read(ctx)
	if err != nil {
		return fail(err)
	}
	if change.Jobs, err = f.jobs(ctx); err != nil {
		return fail(err)
	}
	var running int
	if change.From, running, err = f.Service.Tasks(ctx); err != nil {
		return fail(err)
	}
	change.To = change.From
	now := f.Now()
	count, excess := f.Rules.Decide(now, change.Jobs, change.From, state)
	if count > change.From {
		// Set the number before recording the state, which can wait.
		if err := f.Service.SetDesired(ctx, count); err != nil {
			return fail(err)
		}
		change.To = count
	}
	seen := f.Rules.see(now, running, count, state)
	if !excess.Equal(state.ExcessSince) || worthRecording(seen, state.Fleet) {
		if err := f.Store.Saw(ctx, excess, seen); err != nil {
			return fail(err)
		}
	}
	if count >= change.From {
		return change, nil
	}
	if err := f.Service.SetDesired(ctx, count); err != nil {
		return fail(err)
	}
	change.To = count
	if count > 0 {
		return change, nil
	}
	// A concurrent wake may have seen the last worker, and thus left the number unchanged.
	latest, err := f.Store.Read(ctx)
	if err != nil {
		return fail(err)
	}
	if latest.WokenAt.After(state.WokenAt) {
		if err := f.Service.SetDesired(ctx, 1); err != nil {
			return fail(err)
		}
		change.To = 1
	}
	return change, nil
}
