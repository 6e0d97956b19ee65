package job

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
)

type StopReason string

const (
	// Broken means that the orchestration could not queue the job or record its end.
	Broken StopReason = "broken"
	// Refused means that a write was rejected because the job has already ended or has a new run.
	Refused StopReason = "refused"
	Aborted StopReason = "aborted"
	Overran StopReason = "overran"
)

// Reaper ends jobs that neither their orchestrator nor their queue has ended
// (docs/contract/jobs.md). It never changes a job that has ended.
type Reaper struct {
	Store Store
	Now   func() time.Time
}

// Stopped ends a job whose orchestration has stopped. If stop is Refused, it does not end a processing job, because
// the new run or the deadline will.
func (r *Reaper) Stopped(ctx context.Context, id string, stop StopReason) error {
	j, err := r.Store.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil // the client was never given the id
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

// GivenUp ends a job whose message was received too many times without being deleted from the queue.
func (r *Reaper) GivenUp(ctx context.Context, id string) error {
	return r.fail(ctx, id, WorkerLostFailure())
}

func (r *Reaper) fail(ctx context.Context, id string, failure Failure) error {
	return known(r.Store.Fail(ctx, id, "", failure, r.Now()))
}

func known(err error) error {
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("job: end a job: %w", err)
	}
	return nil
}
