package job

import (
	"context"
	"iter"
	"time"
)

// Watcher tells of changes of jobs.
type Watcher interface {
	// Watch gives a channel that gets a value after each change of the job, until
	// stop is called. Changes that come before the last value was taken are one
	// with it, and not every value means a change that shows.
	Watch(id string) (changed <-chan struct{}, stop func())
}

// How often a job is looked at that somebody waits for. Where changes are told,
// the looks are for its deadline alone, and for what other processes do.
const (
	watchedLooks = time.Second
	// One that is pending may stand in a long queue, beside many others that are
	// waited for; of those that are being processed there are never more than
	// workers.
	firstLook       = 5 * time.Millisecond
	pendingLooks    = 100 * time.Millisecond
	processingLooks = 20 * time.Millisecond
	// changeLooks is for who follows a job to its end, for minutes perhaps: each
	// look is a read that costs.
	changeLooks = 2 * time.Second
)

// Wait waits until an account's job has ended, and gives it. The deadline of the
// job ends the wait too.
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

// Changes gives an account's job as it is, and then at each change of its status
// or progress that is seen, until it has ended. It ends with an error, the
// context's among them, or with the end of the job.
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

// looks gives an account's job again and again, until it has ended or an error
// comes. The pause before a look is told by the status at the last one, empty
// before the first; where changes are told, a change ends it.
func (s *Service) looks(ctx context.Context, account, id string, pause func(last Status) time.Duration) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		var changed <-chan struct{}
		if s.Watcher != nil {
			watched, stop := s.Watcher.Watch(id)
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
