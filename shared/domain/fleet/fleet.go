// Package fleet decides how many workers run in a deployment that scales to zero.
//
// A wake raises the number as soon as work is accepted. A check, once a minute, compares the queued
// jobs with the workers; only a check lowers the number. After a raise, more checks follow within the
// minute. Nothing else may change the number: queue metrics lag by minutes, and by a quarter of an hour
// after hours of silence, so autoscaling on them stops workers that have just started.
package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cutroom/shared/domain/job"
)

type Rules struct {
	// Min and Max limit the number of workers.
	Min, Max int
	// Backlog is how many jobs each worker may have, including running ones, before another worker starts.
	Backlog int
	// Idle is how long surplus workers are kept, and how long a wake keeps one without a job.
	Idle time.Duration
}

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

// MinIdle is the lowest Idle: queues report their length up to a minute late, and a container takes
// minutes to start.
const MinIdle = 5 * time.Minute

// Stamp is the stored state of a fleet between looks.
type Stamp struct {
	// WokenAt is the time of the last wake, or zero.
	WokenAt time.Time
	// ExcessSince is since when more workers run than needed, or zero.
	ExcessSince time.Time
	// Fleet is the workers' state at the last look, for admission.
	Fleet job.Fleet
}

// Decide returns how many workers should run, and since when there are too many. jobs counts
// waiting and running jobs; desired is the current number of workers.
//
// The number rises at once. It falls only after every look for Idle found it too high, because one
// look can miss a job that was just accepted.
func (r Rules) Decide(now time.Time, jobs, desired int, s Stamp) (count int, excessSince time.Time) {
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

// need returns how many workers a number of jobs needs.
func (r Rules) need(jobs int) int { return r.clamp((max(jobs, 0) + r.Backlog - 1) / r.Backlog) }

func (r Rules) clamp(n int) int { return min(max(n, r.Min), r.Max) }

// see returns the workers' state for admission: how many run and are wanted, since when workers are
// missing, and how long they took to start.
func (r Rules) see(now time.Time, running, wanted int, s Stamp) job.Fleet {
	last, seen := s.Fleet, s.Fleet
	seen.SeenAt, seen.Running, seen.Wanted, seen.Most = now, running, wanted, r.Max
	if wanted > last.Wanted {
		seen.WantedSince = now
		if last.Wanted == 0 && s.WokenAt.After(last.SeenAt) && s.WokenAt.Before(now) {
			seen.WantedSince = s.WokenAt // which has raised the number
		}
	}
	switch {
	case running >= wanted:
		seen.ShortSince = time.Time{}
		// All have started, the last one this long after it was wanted.
		if running > last.Running && !last.ShortSince.IsZero() && !last.WantedSince.IsZero() {
			seen.StartTime = learn(last.Starts(), now.Sub(last.WantedSince))
		}
	case last.ShortSince.IsZero() && wanted > last.Wanted:
		seen.ShortSince = seen.WantedSince
	case last.ShortSince.IsZero():
		// Workers were lost, as in a deploy. They were wanted long ago, which says nothing about
		// start times.
		seen.ShortSince, seen.WantedSince = now, time.Time{}
	case running > last.Running:
		seen.ShortSince = now
	}
	return seen
}

// learnAtOnce limits how much one start can raise the known start time. A longer start probably
// lacked hardware. If a fleet has become slower, repeated starts raise it further.
const learnAtOnce = 4 * time.Minute

// learn returns the expected start time after a start. It rises quickly and falls slowly.
func learn(known, took time.Duration) time.Duration {
	took = min(max(took, 0), known+learnAtOnce, job.MaxAge)
	return max(took, (3*known+took)/4)
}

// seenEvery is how old the state for admission may become while workers run.
const seenEvery = 5 * time.Minute

// worthTelling reports whether the state for admission must be written. A sleeping deployment costs
// no write.
func worthTelling(seen, last job.Fleet) bool {
	someone := seen.Running > 0 || seen.Wanted > 0
	if last.SeenAt.IsZero() || someone && seen.SeenAt.Sub(last.SeenAt).Abs() >= seenEvery {
		return true
	}
	last.SeenAt = seen.SeenAt
	return seen != last
}

type Stamps interface {
	// Read returns the current stamp by a consistent read.
	//
	// Errors: fault.Unavailable.
	Read(ctx context.Context) (Stamp, error)
	// Wake records a wake. An earlier time than the recorded one changes nothing.
	//
	// Errors: fault.Unavailable.
	Wake(ctx context.Context, at time.Time) error
	// Saw records since when there are too many workers (zero for never), and the workers' state.
	//
	// Errors: fault.Unavailable.
	Saw(ctx context.Context, excessSince time.Time, seen job.Fleet) error
}

type Lengths interface {
	// Length returns about how many jobs of a lane wait or run.
	Length(ctx context.Context, lane job.Lane) (int, error)
}

type Service interface {
	// Tasks returns the desired and the running number of workers.
	Tasks(ctx context.Context) (desired, running int, err error)
	// SetDesired sets the desired number. A busy worker is not stopped.
	SetDesired(ctx context.Context, n int) error
}

type Fleet struct {
	Rules   Rules
	Stamps  Stamps
	Lengths Lengths
	Service Service
	Now     func() time.Time

	mu sync.Mutex
	// awakeAt is when a wake last succeeded.
	awakeAt time.Time
}

// Look is the result of a check or a wake.
type Look struct {
	// Jobs counts waiting and running jobs. From and To are the desired numbers of workers before
	// and after.
	Jobs, From, To int
}

func (l Look) Rose() bool { return l.To > l.From }

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

// Look sets the desired number of workers. If a read fails, it changes nothing.
func (f *Fleet) Look(ctx context.Context) (Look, error) {
	var (
		look Look
		fail = func(err error) (Look, error) { return look, fmt.Errorf("fleet: look: %w", err) }
	)
	stamp, err := f.Stamps.Read(ctx)
	if err != nil {
		return fail(err)
	}
	if look.Jobs, err = f.jobs(ctx); err != nil {
		return fail(err)
	}
	var running int
	if look.From, running, err = f.Service.Tasks(ctx); err != nil {
		return fail(err)
	}
	look.To = look.From
	now := f.Now()
	count, excess := f.Rules.Decide(now, look.Jobs, look.From, stamp)
	if count > look.From {
		// Set it first; the record can wait.
		if err := f.Service.SetDesired(ctx, count); err != nil {
			return fail(err)
		}
		look.To = count
	}
	seen := f.Rules.see(now, running, count, stamp)
	if !excess.Equal(stamp.ExcessSince) || worthTelling(seen, stamp.Fleet) {
		if err := f.Stamps.Saw(ctx, excess, seen); err != nil {
			return fail(err)
		}
	}
	if count >= look.From {
		return look, nil
	}
	if err := f.Service.SetDesired(ctx, count); err != nil {
		return fail(err)
	}
	look.To = count
	if count > 0 {
		return look, nil
	}
	// A concurrent wake may have seen the last worker and kept the number.
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
