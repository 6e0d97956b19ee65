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
	stepTime = 5 * time.Minute
	// Running calls are canceled shutdownTime before a step's deadline, to leave time to store the results.
	shutdownTime = 45 * time.Second
	// The shortest and longest delays after a step without results.
	firstDelay, lastDelay = 30 * time.Second, 15 * time.Minute
)

// StepIntervals returns intervals for processes that pay for every write, read and second.
func StepIntervals() Intervals {
	return Intervals{Keep: 10 * time.Second, Watch: 5 * time.Second, Grace: 8 * time.Minute, PauseAfter: time.Minute}
}

// Steps works on batches in short-lived processes. Each process performs one step: it makes one
// batch's calls for a few minutes, and starts another process if batches are waiting. If a claim
// expires, another process takes over the batch.
type Steps struct {
	Runner  *Runner
	Claims  batch.Claims
	Sweeper *batch.Sweeper
	Others  interface {
		Start(ctx context.Context) error
	}
	// Most limits the number of active batches. Simultaneous starts may exceed it by one or two.
	Most   int
	NewID  func() string
	Now    func() time.Time
	Logger *slog.Logger
}

// Do performs one step of the next batch, if one is waiting and fewer than Most are active. The
// context must have the same deadline as the process.
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
	if more { // another batch is waiting and may start
		failures = append(failures, s.Others.Start(ctx))
	}
	working, cancel := context.WithDeadline(ctx, deadline.Add(-shutdownTime))
	defer cancel()
	s.Runner.Work(working, b.Batch, stepTime)
	failures = append(failures, s.release(ctx, b, holder))
	all, err := s.Claims.Standings(ctx)
	if _, waits := s.next(all); waits {
		failures = append(failures, s.Others.Start(ctx))
	}
	return errors.Join(append(failures, err)...)
}

// claim claims the next batch. ok is false if no batch may start. more means that another process may start a batch.
func (s *Steps) claim(
	ctx context.Context, holder string, deadline time.Time,
) (b batch.Standing, more, ok bool, err error) {
	all, err := s.Claims.Standings(ctx)
	for err == nil {
		i, waits := s.next(all)
		if !waits {
			break
		}
		// If another process claimed the batch first, count it as held too.
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

// next returns the index of a batch of the account with the fewest active batches. Ties go to the
// batch that has waited longest. waits is false if no batch may start.
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

// release ends a batch's claim and sets when work resumes. It compares the batch with its state before the step.
func (s *Steps) release(ctx context.Context, before batch.Standing, holder string) error {
	b, err := s.Runner.config.Store.Get(ctx, before.Account, before.ID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if b.Status.Ended() {
		return s.Sweeper.Sweep(ctx) // delete the batch's blobs immediately
	}
	fruitless, delay := 0, time.Duration(0)
	if b.Status == before.Status && b.Answered+b.Failed == before.Answered+before.Failed {
		fruitless = before.Fruitless + 1
		delay = min(firstDelay<<min(fruitless-1, 10), lastDelay)
		s.Logger.InfoContext(ctx, "batch made no progress", "batch", b.ID, "account", b.Account, "again_in", delay)
	}
	return s.Claims.Release(ctx, b.ID, holder, s.Now().Add(delay), fruitless)
}
