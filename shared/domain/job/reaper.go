package job

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
)

// StopReason is how the orchestration of a job stopped without knowing how the
// job ended.
type StopReason string

// The reasons.
const (
	// Broken orchestration failed by itself: the job could not be queued, or
	// its end could not be written.
	Broken StopReason = "broken"
	// Refused orchestration failed on the condition of its write: the job has
	// already ended, or belongs to another run.
	Refused StopReason = "refused"
	// Aborted orchestration was stopped by a person.
	Aborted StopReason = "aborted"
	// Overran orchestration exceeded its time limit.
	Overran StopReason = "overran"
)

// Reaper ends jobs that nobody else will end, where an orchestrator and a
// queue, not this service, end most of them (docs/contract/jobs.md). It changes
// no job that has ended, and its methods may be called any number of times for
// each.
type Reaper struct {
	Store Store
	Now   func() time.Time
}

// Stopped ends a job whose orchestration has stopped.
//
// After a refused write it leaves a processing job alone: a run that has just
// started has it, and either ends it or lets the deadline do so.
func (r *Reaper) Stopped(ctx context.Context, id string, stop StopReason) error {
	j, err := r.Store.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil // its client never received the id
	}
	if err != nil {
		return fmt.Errorf("job: end %s: %w", id, err)
	}
	now := r.Now()
	switch {
	case j.Status.Terminal():
		return nil
	case !now.Before(j.Deadline):
		_, err = r.Store.Expire(ctx, id, now)
		return known(err)
	case stop == Refused && j.Status == Processing:
		return nil
	case stop == Aborted:
		return r.fail(ctx, id, CancelledFailure())
	case stop == Overran:
		return r.fail(ctx, id, TimeoutFailure())
	}
	return r.fail(ctx, id, Failure{EngineError, "The job could not be handed to a worker."})
}

// GivenUp ends a job whose message the queue has given up on: it was received
// again and again, and never settled.
func (r *Reaper) GivenUp(ctx context.Context, id string) error {
	return r.fail(ctx, id, WorkerLostFailure())
}

func (r *Reaper) fail(ctx context.Context, id string, failure Failure) error {
	return known(r.Store.Fail(ctx, id, "", failure, r.Now()))
}

// known drops the errors that mean that there is no such job, or that it has
// ended.
func known(err error) error {
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("job: end it: %w", err)
	}
	return nil
}
