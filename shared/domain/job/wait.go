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
	// A pending job may be far back in the queue, with many others that clients
	// wait for; at most as many jobs are processing as there are workers.
	firstLook       = 5 * time.Millisecond
	pendingLooks    = 100 * time.Millisecond
	processingLooks = 20 * time.Millisecond
	// changeLooks is for clients that follow a job to its end, perhaps for
	// minutes: each read has a cost.
	changeLooks = 2 * time.Second
)

// Wait waits until an account's job has ended, and returns it. The job's
// deadline ends the wait too.
//
// Errors: the context's when it ends first; those of Get.
func (s *Service) Wait(ctx context.Context, account, id string) (Job, error) {
	pause := firstLook
	for j, err := range s.looks(ctx, account, id, func(last Status) time.Duration {
		switch last {
		case "":
		case Pending:
			pause = min(pause*3/2, pendingLooks)
		default:
			pause = min(pause*3/2, processingLooks)
		}
		return pause
	}) {
		if err != nil || j.Status.Terminal() {
			return j, err
		}
	}
	return Job{}, ctx.Err()
}

// Changes yields an account's job as it is, and then after each observed change
// of its status or progress, until the job has ended or an error, such as the
// context's, ends the sequence.
//
// Errors: those of Get.
func (s *Service) Changes(ctx context.Context, account, id string) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		var last Job
		for j, err := range s.looks(ctx, account, id, func(last Status) time.Duration {
			if last == "" {
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
// fails. The pause before a read depends on the status at the last one, which
// is empty before the first; a notified change ends the pause.
func (s *Service) looks(
	ctx context.Context, account, id string, pause func(last Status) time.Duration,
) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		var changed <-chan struct{}
		if s.config.Watcher != nil {
			watched, stop := s.config.Watcher.Watch(id)
			defer stop()
			changed = watched
			pause = func(last Status) time.Duration {
				if last == "" {
					return 0
				}
				return watchedLooks
			}
		}
		timer := time.NewTimer(pause(""))
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
			timer.Reset(pause(j.Status))
		}
	}
}
