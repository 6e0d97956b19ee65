package job

import (
	"context"
	"iter"
	"time"
)

type Watcher interface {
	// Watch returns a channel that receives a value when the job may have changed, until the caller calls stop.
	Watch(id string) (changed <-chan struct{}, stop func())
}

// With change notifications, reads are needed only to detect the deadline and changes made by other processes.
const (
	watchedPause = time.Second
	// Without change notifications, the pauses grow up to 1/pauseDivisor of the time that the client has waited. The
	// client does not notice these delays, and the number of reads grows only logarithmically.
	firstPause      = 5 * time.Millisecond
	processingPause = 20 * time.Millisecond
	longestPause    = time.Second
	pauseDivisor    = 10
	// If the run time of similar jobs is known, the first read happens after the fraction notYet of
	// the shortest run time, but at the latest after longestSleep, so that a failure is noticed.
	notYet       = 0.8
	longestSleep = 2 * time.Second
	// knownRuns is how many runs of a model are needed before its shortest run time is considered known.
	knownRuns = 3
	// changesPause is the pause between reads for clients that follow a job until it ends. Each read costs money.
	changesPause = 2 * time.Second
)

// Wait waits until an account's job ends, at its deadline at the latest.
func (s *Service) Wait(ctx context.Context, account, id string) (Job, error) {
	pace := s.Pace(ctx)
	for j, err := range s.reads(ctx, account, id, pace.Next) {
		if err != nil || j.Status.Terminal() {
			return j, err
		}
	}
	return Job{}, ctx.Err()
}

type RunTimes interface {
	// RunTimes returns the lane's run times in no particular order. They may be a few seconds out of date.
	RunTimes(ctx context.Context, lane Lane) ([]RunTime, error)
}

// Pace decides how often to read a job that a client waits for.
type Pace struct {
	pause time.Duration
	// takes returns a job's minimum run time, or 0 if unknown. It may be nil.
	takes func(Job) time.Duration
	asked bool
	least time.Duration
}

func (s *Service) Pace(ctx context.Context) *Pace {
	return &Pace{takes: func(j Job) time.Duration { return s.leastTime(ctx, j) }}
}

// leastTime returns the engine's estimate or the model's shortest recent run, whichever is shorter.
func (s *Service) leastTime(ctx context.Context, j Job) time.Duration {
	if s.config.RunTimes == nil {
		return j.Estimate
	}
	runs, err := s.config.RunTimes.RunTimes(ctx, j.Lane)
	if err != nil {
		return 0 // the minimum time is optional
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

// Next returns the pause before the next read. last is the job as last read, or the zero value before the first read.
func (p *Pace) Next(last Job, now time.Time) time.Duration {
	if last.Status == "" {
		p.pause = firstPause
		return p.pause
	}
	if !p.asked && p.takes != nil {
		p.asked, p.least = true, p.takes(last)
	}
	// Count from the start of the run. A job may wait for much longer than it runs.
	since := last.CreatedAt
	if !last.StartedAt.IsZero() {
		since = last.StartedAt
	}
	p.pause = min(p.pause*3/2, max(processingPause, now.Sub(since)/pauseDivisor), longestPause)
	sleep := since.Add(time.Duration(notYet * float64(p.least))).Sub(now)
	if sleep <= p.pause {
		return p.pause
	}
	p.pause = longestPause // from now on, the pauses depend on how long the client has waited
	return min(sleep, longestSleep)
}

// Changes yields a job now, and again after each observed change of its status or progress, until
// the job has ended or an error occurs.
func (s *Service) Changes(ctx context.Context, account, id string) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		var last Job
		for j, err := range s.reads(ctx, account, id, func(last Job, _ time.Time) time.Duration {
			if last.Status == "" {
				return 0
			}
			return changesPause
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

// reads yields a job repeatedly until it has ended or a read fails. The function pause receives the job as last read,
// or the zero value before the first read.
func (s *Service) reads(ctx context.Context, account, id string,
	pause func(last Job, now time.Time) time.Duration) iter.Seq2[Job, error] {
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
				return watchedPause
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
