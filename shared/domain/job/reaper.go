package job

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
)

// StopReason says how the orchestration of a job stopped without an end of the job
// that it knows of.
type StopReason string

// The stops.
const (
	// Broken orchestration failed by itself: the job could not be handed to its
	// queue, or its end not be written.
	Broken StopReason = "broken"
	// Refused orchestration failed on the condition of its write: the job has
	// ended otherwise, or another run has it.
	Refused StopReason = "refused"
	// Aborted orchestration was stopped by a person.
	Aborted StopReason = "aborted"
	// Overran orchestration took longer than it may.
	Overran StopReason = "overran"
)

// Reaper gives an end to jobs that nobody else will end, where an orchestrator
// and a queue, not this service, see to most of them (docs/contract/jobs.md). It
// changes no job that has ended, and may hear of each any number of times.
type Reaper struct {
	Store Store
	Now   func() time.Time
}

// Stopped ends a job whose orchestration has stopped.
//
// A refused write leaves a job alone that is being processed: a run that started
// just then has it, and ends it by itself, or its deadline does.
func (o *Reaper) Stopped(ctx context.Context, id string, stop StopReason) error {
	j, err := o.Store.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil // nobody was told of it
	}
	if err != nil {
		return fmt.Errorf("job: end %s: %w", id, err)
	}
	now := o.Now()
	switch {
	case j.Status.Terminal():
		return nil
	case !now.Before(j.Deadline):
		_, err = o.Store.Expire(ctx, id, now)
		return known(err)
	case stop == Refused && j.Status == Processing:
		return nil
	case stop == Aborted:
		return o.fail(ctx, id, CancelledFailure())
	case stop == Overran:
		return o.fail(ctx, id, TimeoutFailure())
	}
	return o.fail(ctx, id, Failure{EngineError, "The job could not be handed to a worker."})
}

// GivenUp ends a job whose message the queue has given up on: it was received
// again and again, and nobody settled it.
func (o *Reaper) GivenUp(ctx context.Context, id string) error {
	return o.fail(ctx, id, WorkerLostFailure())
}

func (o *Reaper) fail(ctx context.Context, id string, failure Failure) error {
	return known(o.Store.Fail(ctx, id, "", failure, o.Now()))
}

// known drops the errors that say that there is no such job to end any more.
func known(err error) error {
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("job: give it its end: %w", err)
	}
	return nil
}
