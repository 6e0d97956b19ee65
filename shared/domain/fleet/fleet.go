// Package fleet decides how many workers there are to be where they scale to zero.
//
// A wake raises the fleet to what is queued as soon as work is accepted. A look, once a
// minute, compares the jobs in the queues with the workers and decides; it alone lowers
// the number. While either raises it, it is followed by others within the minute. Nothing
// else changes the number: metrics of queues lag by minutes, and by a quarter of an hour
// after hours of silence, so what acts on them stops workers that were just started.
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
	// Fleet is what the last look saw of the workers, for admission.
	Fleet job.Fleet
}

// Decide returns how many workers should run, and when there began to be
// too many of them. Jobs are those that wait or are in work, desired is how many
// workers there are to be so far.
//
// The number rises at once. It falls only after each look of Idle found it too
// high: one look can miss a job that has just been accepted.
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

// need returns how many workers so many jobs take.
func (r Rules) need(jobs int) int { return r.clamp((max(jobs, 0) + r.Backlog - 1) / r.Backlog) }

func (r Rules) clamp(n int) int { return min(max(n, r.Min), r.Max) }

// see returns what admission is told: how many workers run and are to be, since when others
// are missing, and how long they took to start.
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
		// All have come, the last of them this long after they were wanted.
		if running > last.Running && !last.ShortSince.IsZero() && !last.WantedSince.IsZero() {
			seen.StartTime = learn(last.Starts(), now.Sub(last.WantedSince))
		}
	case last.ShortSince.IsZero() && wanted > last.Wanted:
		seen.ShortSince = seen.WantedSince
	case last.ShortSince.IsZero():
		// Some were lost, as in a deploy. They were wanted long ago, which tells nothing of
		// how long others take to start.
		seen.ShortSince, seen.WantedSince = now, time.Time{}
	case running > last.Running:
		seen.ShortSince = now
	}
	return seen
}

// learnAtOnce is by how much one start can lengthen what is known. A start that lasts longer
// is one for which there was no hardware; those of a fleet that has become slower come nearer
// each time.
const learnAtOnce = 4 * time.Minute

// learn returns how long a start is taken to last after one that took so long. It is as
// cautious as the longest, and forgets it by and by.
func learn(known, took time.Duration) time.Duration {
	took = min(max(took, 0), known+learnAtOnce, job.MaxAge)
	return max(took, (3*known+took)/4)
}

// seenEvery is how old what admission was told may become while there are workers.
const seenEvery = 5 * time.Minute

// worthTelling reports whether admission is to be told: a deploy that sleeps costs no write.
func worthTelling(seen, last job.Fleet) bool {
	someone := seen.Running > 0 || seen.Wanted > 0
	if last.SeenAt.IsZero() || someone && seen.SeenAt.Sub(last.SeenAt).Abs() >= seenEvery {
		return true
	}
	last.SeenAt = seen.SeenAt
	return seen != last
}

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
	// Saw records when there began to be too many workers, zero for none, and what a look
	// saw of them.
	//
	// Errors: fault.Unavailable.
	Saw(ctx context.Context, excessSince time.Time, seen job.Fleet) error
}

// Lengths reports how long the queues are.
type Lengths interface {
	// Length returns about how many jobs of a lane wait or are in work.
	Length(ctx context.Context, lane job.Lane) (int, error)
}

// Service runs the workers.
type Service interface {
	// Tasks returns how many workers there are to be, and how many run.
	Tasks(ctx context.Context) (desired, running int, err error)
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
	// awakeAt is when a wake last succeeded.
	awakeAt time.Time
}

// Look is what a look, or a wake, found and decided.
type Look struct {
	// Jobs wait or are in work; workers were to be From, and are to be To.
	Jobs, From, To int
}

// Rose reports whether there are to be more workers.
func (l Look) Rose() bool { return l.To > l.From }

// jobs returns how many wait or are in work.
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
		// At once: what is told of it can wait.
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
