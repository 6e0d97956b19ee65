package batches

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
)

const (
	// stepTime is for how long calls are begun in a step.
	stepTime = 5 * time.Minute
	// lastWords is what is left of the time of a step's process when calls that are under
	// way are given up: to keep answers and to note how far the batch is.
	lastWords = 45 * time.Second
	// firstDelay and lastDelay are the waits after a step that brought nothing, at first and
	// at most.
	firstDelay, lastDelay = 30 * time.Second, 15 * time.Minute
)

// StepRhythm is that of a runner in a process that works by steps, where each write and each
// read is paid for and so is each second.
func StepRhythm() Rhythm {
	return Rhythm{Keep: 10 * time.Second, Watch: 5 * time.Second, Grace: 8 * time.Minute, Patience: time.Minute}
}

// Steps works on batches in processes that are started for it and end: each makes a step, which
// is to make calls of one batch for some minutes and to keep their answers, and starts others
// while batches wait. What a process that dies leaves behind, another finds when its claim is
// over.
type Steps struct {
	Runner  *Runner
	Claims  batch.Claims
	Sweeper *batch.Sweeper
	// Others starts another process, which makes a step.
	Others interface {
		Start(ctx context.Context) error
	}
	// Most is how many batches are worked on at once, or one or two more, when processes
	// begin at the same moment.
	Most   int
	NewID  func() string
	Now    func() time.Time
	Logger *slog.Logger
}

// Do makes a step of the batch that is next, if one waits and there is a place for it. The
// context's deadline is that of the process.
//
// Errors: those of the store, and of a start of others.
func (s *Steps) Do(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return errors.New("batches: a step has no deadline")
	}
	swept := s.Sweeper.Sweep(ctx)
	holder := s.NewID()
	b, more, ok, err := s.claim(ctx, holder, deadline)
	if err != nil || !ok {
		return errors.Join(swept, err)
	}
	failures := []error{swept}
	if more { // there is another, and a place for it
		failures = append(failures, s.Others.Start(ctx))
	}
	working, cancel := context.WithDeadline(ctx, deadline.Add(-lastWords))
	defer cancel()
	s.Runner.Work(working, b.Batch, stepTime)
	failures = append(failures, s.release(ctx, b, holder))
	all, err := s.Claims.Standings(ctx)
	if _, waits := s.next(all); waits {
		failures = append(failures, s.Others.Start(ctx))
	}
	return errors.Join(append(failures, err)...)
}

// claim claims the batch that is next, and reports whether there is one, and whether there is
// more to do.
func (s *Steps) claim(
	ctx context.Context, holder string, deadline time.Time,
) (b batch.Standing, more, ok bool, err error) {
	all, err := s.Claims.Standings(ctx)
	for err == nil {
		i, waits := s.next(all)
		if !waits {
			break
		}
		// What somebody else claims at this moment is held too.
		now := s.Now()
		all[i].HeldUntil = now.Add(time.Until(deadline))
		b = all[i]
		if ok, err = s.Claims.Claim(ctx, b.ID, holder, now, b.HeldUntil); ok {
			_, more = s.next(all)
			return b, more, true, nil
		}
	}
	return b, false, false, err
}

// next returns the place in the list of the batch to work on next: one of the account of which
// the fewest are worked on, and of those the one that has waited longest. It reports whether
// one waits and there is a place for it.
func (s *Steps) next(all []batch.Standing) (chosen int, waits bool) {
	now, places := s.Now(), s.Most
	held := map[string]int{}
	for _, b := range all {
		if b.Held(now) {
			held[b.Account]++
			places--
		}
	}
	for i, b := range all {
		if !b.Waits(now) {
			continue
		}
		best := all[chosen]
		if !waits || held[b.Account] < held[best.Account] ||
			held[b.Account] == held[best.Account] && b.Due.Before(best.Due) {
			chosen, waits = i, true
		}
	}
	return chosen, waits && places > 0
}

// release ends the claim of a batch, which was so when the step began, and says when work on
// it is to go on.
func (s *Steps) release(ctx context.Context, before batch.Standing, holder string) error {
	b, err := s.Runner.config.Store.Get(ctx, before.Account, before.ID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if b.Status.Ended() {
		return s.Sweeper.Sweep(ctx) // its blobs go at once
	}
	fruitless, delay := 0, time.Duration(0)
	if b.Status == before.Status && b.Answered+b.Failed == before.Answered+before.Failed {
		fruitless = before.Fruitless + 1
		delay = min(firstDelay<<min(fruitless-1, 10), lastDelay)
		s.Logger.InfoContext(ctx, "no call of a batch was answered", "batch", b.ID, "account", b.Account, "again_in", delay)
	}
	return s.Claims.Release(ctx, b.ID, holder, s.Now().Add(delay), fruitless)
}
