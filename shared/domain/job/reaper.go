package job

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
)

// StopReason is why a job's orchestration stopped.
type StopReason string

const (
	// Broken orchestration failed: the job could not be queued, or its end could not be written.
	Broken StopReason = "broken"
	// Refused orchestration failed on the condition of its write: the job has
	// already ended, or belongs to another run.
	Refused StopReason = "refused"
	// Aborted orchestration was stopped by a person.
	Aborted StopReason = "aborted"
	// Overran orchestration exceeded its time limit.
	Overran StopReason = "overran"
)

// Reaper ends jobs that their orchestrator and queue did not end (docs/contract/jobs.md). It never
// changes an ended job, and its methods may be repeated.
type Reaper struct {
	Store Store
	Now   func() time.Time
}

// Stopped ends a job whose orchestration has stopped.
//
// After a refused write it does not change a processing job: a run that has just started will end
// it, or its deadline will.
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

// GivenUp ends a job whose message was received too often without being settled.
func (r *Reaper) GivenUp(ctx context.Context, id string) error {
	return r.fail(ctx, id, WorkerLostFailure())
}

func (r *Reaper) fail(ctx context.Context, id string, failure Failure) error {
	return known(r.Store.Fail(ctx, id, "", failure, r.Now()))
}

// known ignores the errors for a missing or ended job.
func known(err error) error {
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("job: end it: %w", err)
	}
	return nil
}
