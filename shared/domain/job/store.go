package job

import (
	"context"
	"time"

	"cutroom/shared/domain/budget"
)

// Store stores jobs. Every write is conditional on the current record, so a late, repeated or stale
// write has no effect. Callers pass the times, which are stored with millisecond precision.
type Store interface {
	// Accept atomically records a pending job, queues it, counts Usage, and reserves either all claims or none. The
	// claims become the job's Holds. The job survives a crash once Accept has returned nil. Accepting the same id
	// again succeeds and changes nothing.
	//
	// Errors: fault.Limited if the account's pending and processing jobs have reached the limit (0 means no limit);
	// fault.Exhausted if a counter has too little left for its claim. Both limits are exact under concurrency, except
	// that a call need not count jobs that concurrent calls with a different limit add.
	Accept(ctx context.Context, j Job, limit int, claims ...budget.Claim) error

	// Get does not check which account the job belongs to.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (Job, error)

	// Expire fails a job that is past its deadline (see Job.LateFailure), and records the deadline as its end. The holds
	// return to their budgets. Any other job is returned unchanged.
	//
	// Errors: fault.NotFound.
	Expire(ctx context.Context, id string, now time.Time) (Job, error)

	// List returns an account's jobs that match the filter at the given time (see Job.At), highest id first, up to
	// the limit. Only jobs with ids lower than `after` are listed, and a job with that id need not exist. If `after`
	// is empty, List starts with the highest id. With Filter.OldestFirst, the order is reversed. It may return fewer
	// jobs although more follow. next is the id to continue from, or empty at the end. Jobs accepted within the last
	// second may be missing.
	List(ctx context.Context, account string, filter Filter, after string, limit int,
		now time.Time) (jobs []Job, next string, err error)

	// Forget deletes a job's record, but only if the job has ended.
	Forget(ctx context.Context, id string) error

	Backlog(ctx context.Context, lane Lane, account string) (Backlog, error)

	Failer
}

type Failer interface {
	// Fail ends the job with a failure and returns its holds to their budgets. With an empty nonce
	// it does so regardless of the current run. Repeating it succeeds.
	//
	// Errors: fault.NotFound; fault.Conflict if the job has ended, or the run is no longer current.
	Fail(ctx context.Context, id, nonce string, failure Failure, now time.Time) error
}

// Runs has the methods with which a worker updates job records.
type Runs interface {
	// Start starts a run. The job becomes processing, its run count increases by one, and the nonce, which must not
	// be empty, identifies the run. The first run sets the deadline to RunDeadline. Starting the same nonce again
	// succeeds and is not counted.
	//
	// Errors: fault.NotFound; fault.Conflict if the job has ended; ErrOverdue and the job after the deadline;
	// ErrNoRunsLeft after MaxRuns runs. On error, nothing changes.
	Start(ctx context.Context, id, nonce string, now time.Time) (Job, error)

	// Progress records a run's progress, clamped to the range 0 to 1. It never lowers the recorded progress.
	//
	// Errors: fault.Conflict if the run is no longer current. The worker must then stop.
	Progress(ctx context.Context, id, nonce string, fraction float64) error

	// Release undoes the start of a run if the run is still current. The job's status stays processing.
	Release(ctx context.Context, id, nonce string) error

	// Complete ends the job with its result and sets the progress to 1. In the same commit it adds Billed to the
	// account's usage, once per job, and settles the job's holds. Repeating it succeeds.
	//
	// Errors: fault.Conflict if the run is no longer current, or if the deadline has been reached. In that case
	// nothing changes.
	Complete(ctx context.Context, id, nonce string, result Result, now time.Time) error

	Failer
}

// Retention has the store methods that the sweeper on one machine needs.
type Retention interface {
	// Overdue returns the ids of open jobs whose deadline is at or before now.
	Overdue(ctx context.Context, now time.Time, limit int) ([]string, error)
	// Ended returns jobs that ended before the given time and whose ids are above the given id, sorted by id.
	Ended(ctx context.Context, before time.Time, after string, limit int) ([]Job, error)
	Known(ctx context.Context, id string) (bool, error)
}

type OpenJobs struct {
	Lane   Lane
	Status Status
	Count  int
	Oldest time.Time
}
