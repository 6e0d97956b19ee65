package job

import (
	"context"
	"iter"
	"time"
)

type Watcher interface {
	// Watch returns a channel that receives a value after changes of the job until the caller calls
	// stop. A value may arrive without a visible change.
	Watch(id string) (changed <-chan struct{}, stop func())
}

// With notifications, reads only detect the deadline and changes by other processes.
const (
	watchedPause = time.Second
	// Without notifications the pauses grow up to 1/pauseDivisor of the time that the client has
	// waited. The client does not notice that delay, and the number of reads grows with the logarithm
	// of the time.
	firstPause      = 5 * time.Millisecond
	processingPause = 20 * time.Millisecond
	longestPause    = time.Second
	pauseDivisor    = 10
	// If the run time of similar jobs is known, the first read happens after the fraction notYet of
	// the shortest run time. An earlier failure is noticed after at most longestSleep.
	notYet       = 0.8
	longestSleep = 2 * time.Second
	// knownRuns is the number of runs of a model needed to know its shortest time.
	knownRuns = 3
	// changesPause is for clients that follow a job to its end. Each read costs money.
	changesPause = 2 * time.Second
)

// Wait waits until an account's job has ended, at most until its deadline.
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
	// RunTimes may be some seconds old and in any order.
	RunTimes(ctx context.Context, lane Lane) ([]RunTime, error)
}

// Pace decides how often to read a job that a client waits for.
type Pace struct {
	pause time.Duration
	// takes returns the minimum run time of a job, or 0. It may be nil.
	takes func(Job) time.Duration
	asked bool
	least time.Duration
}

func (s *Service) Pace(ctx context.Context) *Pace {
	return &Pace{takes: func(j Job) time.Duration { return s.leastTime(ctx, j) }}
}

// leastTime returns the engine's estimate or the shortest recent run of the model, whichever is
// shorter.
func (s *Service) leastTime(ctx context.Context, j Job) time.Duration {
	if s.config.RunTimes == nil {
		return j.Estimate
	}
	runs, err := s.config.RunTimes.RunTimes(ctx, j.Lane)
	if err != nil {
		return 0 // the client waits anyway
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

// Next returns the pause before the next read. last is the zero value before the first read.
func (p *Pace) Next(last Job, now time.Time) time.Duration {
	if last.Status == "" {
		p.pause = firstPause
		return p.pause
	}
	if !p.asked && p.takes != nil {
		p.asked, p.least = true, p.takes(last)
	}
	// A run may be much shorter than the wait before the run.
	since := last.CreatedAt
	if !last.StartedAt.IsZero() {
		since = last.StartedAt
	}
	p.pause = min(p.pause*3/2, max(processingPause, now.Sub(since)/pauseDivisor), longestPause)
	sleep := since.Add(time.Duration(notYet * float64(p.least))).Sub(now)
	if sleep <= p.pause {
		return p.pause
	}
	p.pause = longestPause // from now on a fraction of the time decides
	return min(sleep, longestSleep)
}

// Changes yields a job now, and again after each observed change of its status or progress, until
// the job has ended or after an error.
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

// reads yields a job repeatedly until it has ended or a read fails. pause gets the job at the last
// read, or the zero value before the first.
func (s *Service) reads(
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
