package job

import (
	"context"
	"iter"
	"time"
)

// Watcher notifies of changes of jobs.
type Watcher interface {
	// Watch returns a channel that receives a value after each change of the
	// job, until stop is called. Changes before the last value was received are
	// merged with it, and not every value means a visible change.
	Watch(id string) (changed <-chan struct{}, stop func())
}

// How often a job that a client waits for is read. With notifications, the
// reads are only for its deadline, and for changes by other processes.
const (
	watchedLooks = time.Second
	// Without them the pauses grow from the first to the longest, but a read is never
	// later than a lookPart of the time that the client has waited so far: a client notices
	// no more of it, and the reads of a job grow with the logarithm of its time. A pending
	// job may be far back in the queue.
	firstLook       = 5 * time.Millisecond
	processingLooks = 20 * time.Millisecond
	longestLook     = time.Second
	lookPart        = 10
	// Where it is known how long such jobs take, nobody looks before notYet of the shortest
	// time; but a failure may come sooner, and is told after longestSleep at the latest.
	notYet       = 0.8
	longestSleep = 2 * time.Second
	// knownRuns is how many runs of a model have to be known for the shortest to tell.
	knownRuns = 3
	// changeLooks is for clients that follow a job to its end, perhaps for
	// minutes: each read has a cost.
	changeLooks = 2 * time.Second
)

// Wait waits until an account's job has ended, and returns it. The job's
// deadline ends the wait too.
//
// Errors: the context's when it ends first; those of Get.
func (s *Service) Wait(ctx context.Context, account, id string) (Job, error) {
	pace := s.Pace(ctx)
	for j, err := range s.looks(ctx, account, id, pace.Next) {
		if err != nil || j.Status.Terminal() {
			return j, err
		}
	}
	return Job{}, ctx.Err()
}

// RunTimes tells how long jobs took.
type RunTimes interface {
	// RunTimes returns those of the runs of a lane that completed last, in no order. They may
	// be some seconds old.
	RunTimes(ctx context.Context, lane Lane) ([]RunTime, error)
}

// Pace is how often a job is read that a client waits for. The zero value has read nothing,
// and does not know how long jobs take.
type Pace struct {
	pause time.Duration
	// takes returns how long a job takes at the least, 0 if that is not known; it is asked
	// once, and may be nil.
	takes func(Job) time.Duration
	asked bool
	least time.Duration
}

// Pace returns a pace for one job.
func (s *Service) Pace(ctx context.Context) *Pace {
	return &Pace{takes: func(j Job) time.Duration { return s.leastTime(ctx, j) }}
}

// leastTime returns how long a job's run probably takes at the least: what its engine has
// told, or the shortest of the last runs of its model if that is less.
func (s *Service) leastTime(ctx context.Context, j Job) time.Duration {
	if s.config.RunTimes == nil {
		return j.Estimate
	}
	runs, err := s.config.RunTimes.RunTimes(ctx, j.Lane)
	if err != nil {
		return 0 // the client waits all the same
	}
	shortest, known := time.Duration(0), 0
	for _, run := range runs {
		if run.Model != j.Model {
			continue
		}
		if known++; known == 1 || run.Took < shortest {
			shortest = run.Took
		}
	}
	switch {
	case known < knownRuns:
		return j.Estimate
	case j.Estimate > 0:
		return min(shortest, j.Estimate)
	}
	return shortest
}

// Next returns how long to wait for the next read, given the job as it was at the last one,
// which is the zero value before the first.
func (p *Pace) Next(last Job, now time.Time) time.Duration {
	if last.Status == "" {
		p.pause = firstLook
		return p.pause
	}
	if !p.asked && p.takes != nil {
		p.asked, p.least = true, p.takes(last)
	}
	// A run begins anew: it may be much shorter than the wait for it.
	since := last.CreatedAt
	if !last.StartedAt.IsZero() {
		since = last.StartedAt
	}
	p.pause = min(p.pause*3/2, max(processingLooks, now.Sub(since)/lookPart), longestLook)
	sleep := since.Add(time.Duration(notYet * float64(p.least))).Sub(now)
	if sleep <= p.pause {
		return p.pause
	}
	p.pause = longestLook // from here on a part of the time decides
	return min(sleep, longestSleep)
}

// Changes yields an account's job as it is, and then after each observed change
// of its status or progress, until the job has ended or an error, such as the
// context's, ends the sequence.
//
// Errors: those of Get.
func (s *Service) Changes(ctx context.Context, account, id string) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		var last Job
		for j, err := range s.looks(ctx, account, id, func(last Job, _ time.Time) time.Duration {
			if last.Status == "" {
				return 0
			}
			return changeLooks
		}) {
			if err == nil && j.Status == last.Status && j.Progress == last.Progress {
				continue
			}
			if last = j; !yield(j, err) {
				return
			}
		}
	}
}

// looks yields an account's job again and again, until it has ended or a read
// fails. The pause before a read depends on the job at the last one, which is the
// zero value before the first; a notified change ends the pause.
func (s *Service) looks(
	ctx context.Context, account, id string, pause func(last Job, now time.Time) time.Duration,
) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		var changed <-chan struct{}
		if s.config.Watcher != nil {
			watched, stop := s.config.Watcher.Watch(id)
			defer stop()
			changed = watched
			pause = func(last Job, _ time.Time) time.Duration {
				if last.Status == "" {
					return 0
				}
				return watchedLooks
			}
		}
		timer := time.NewTimer(pause(Job{}, s.config.Now()))
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
			case <-timer.C:
			case <-changed:
			}
			if ctx.Err() != nil {
				yield(Job{}, ctx.Err())
				return
			}
			j, err := s.Get(ctx, account, id)
			if ctx.Err() != nil {
				j, err = Job{}, ctx.Err()
			}
			if !yield(j, err) || err != nil || j.Status.Terminal() {
				return
			}
			timer.Reset(pause(j, s.config.Now()))
		}
	}
}
