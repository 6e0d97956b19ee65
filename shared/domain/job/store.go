package job

import (
	"context"
	"time"

	"cutroom/shared/domain/budget"
)

// Every write of a Store is conditional on the current record, so a late, repeated or stale write
// changes nothing. Callers pass the times, which are stored to the millisecond.
type Store interface {
	// Accept atomically records a pending job, queues it, counts Usage, and reserves all claims or
	// none. The claims become the job's Holds. The job survives a crash after Accept returns nil. A
	// second Accept of the same id succeeds and changes nothing.
	//
	// Errors: fault.Limited if the account has limit or more jobs pending or processing (0 means no
	// limit); fault.Exhausted if a counter has too little left for its claim. Both are exact under
	// concurrency. A call need not count jobs that concurrent calls with another limit add.
	Accept(ctx context.Context, j Job, limit int, claims ...budget.Claim) error

	// Get does not check the account.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (Job, error)

	// Expire fails a job that is past its deadline with the timeout failure, completed at its
	// deadline. Its holds return to their budgets. Expire returns any other job unchanged.
	//
	// Errors: fault.NotFound.
	Expire(ctx context.Context, id string, now time.Time) (Job, error)

	// List returns at most limit of an account's jobs that match the filter at now (see Job.At),
	// highest id first. It starts below the id after, which need not exist, or at the highest id if
	// after is empty. It may return fewer jobs even if more follow. next is the id to continue from,
	// or empty at the end. Jobs accepted within the last second may be missing.
	List(
		ctx context.Context, account string, filter Filter, after string, limit int, now time.Time,
	) (jobs []Job, next string, err error)

	// Forget deletes only the records of ended jobs.
	Forget(ctx context.Context, id string) error

	Backlog(ctx context.Context, lane Lane, account string) (Backlog, error)

	Failer
}

type Failer interface {
	// Fail ends the job with a failure and returns its holds to their budgets. An empty nonce ends it
	// whatever its current run is. A repeated Fail succeeds.
	//
	// Errors: fault.NotFound; fault.Conflict if the job has ended, or the run is no longer current.
	Fail(ctx context.Context, id, nonce string, failure Failure, now time.Time) error
}

// Runs contains a worker's writes to the records of jobs.
type Runs interface {
	// Start starts a run: the job is processing, its runs increase by one, and nonce, which must not
	// be empty, identifies the run. A second Start with the same nonce succeeds and is not counted.
	//
	// Errors: fault.NotFound; fault.Conflict if the job has ended, ErrOverdue past its deadline,
	// ErrNoRunsLeft after MaxRuns runs. An error changes nothing.
	Start(ctx context.Context, id, nonce string, now time.Time) (Job, error)

	// Progress never lowers the recorded progress, which is clamped to 0 to 1.
	//
	// Errors: fault.Conflict if the run is no longer current. The worker must then stop.
	Progress(ctx context.Context, id, nonce string, fraction float64) error

	// Release undoes the start of a run, if it is current. The job stays processing.
	Release(ctx context.Context, id, nonce string) error

	// Complete ends the job with its result and a progress of 1. In the same commit it adds Billed to
	// the usage of the account, once per job, and settles the job's holds. A repeated Complete
	// succeeds.
	//
	// Errors: fault.Conflict, without a change, if the run is no longer current, or the deadline is
	// not after now.
	Complete(ctx context.Context, id, nonce string, result Result, now time.Time) error

	Failer
}

// Retention contains the store methods of the sweeper on one machine.
type Retention interface {
	// Overdue returns open jobs whose deadline is not after now.
	Overdue(ctx context.Context, now time.Time, limit int) ([]string, error)
	// Ended returns jobs that ended before the time and have a higher id than after, sorted by id.
	Ended(ctx context.Context, before time.Time, after string, limit int) ([]Job, error)
	Known(ctx context.Context, id string) (bool, error)
}

type OpenJobs struct {
	Lane   Lane
	Status Status
	Count  int
	Oldest time.Time
}
