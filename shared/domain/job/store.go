package job

import (
	"context"
	"time"

	"cutroom/shared/domain/budget"
)

// Store keeps job records. The suite in jobtest specifies it; every adapter runs it.
//
// Every write is conditional on the current record, so a late, repeated or stale write changes
// nothing. Times come from the caller and are kept to the millisecond.
type Store interface {
	// Accept records a pending job and hands it to the queue of its lane, as one commit: after nil both
	// survive a crash, after an error neither is seen. It adds Usage to the usage of the account. It
	// takes either all claims from the counters of budgets or none; they become the Holds of the job. A
	// second Accept of the same id succeeds and changes nothing.
	//
	// Errors: fault.Limited if the account has limit or more jobs pending or processing (0 means no
	// limit); fault.Exhausted if a counter has too little left for its claim. Both are exact under
	// concurrency. Keys of an account may have different limits; jobs that concurrent calls with
	// another limit add need not be counted.
	Accept(ctx context.Context, j Job, limit int, claims ...budget.Claim) error

	// Get returns the job. The caller checks which account it belongs to.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (Job, error)

	// Expire ends a job that is past its deadline as failed with the timeout failure, completed at
	// its deadline, and returns it. A job that has ended, or has time left at now, stays unchanged.
	// The job's holds return to their budgets.
	//
	// Errors: fault.NotFound.
	Expire(ctx context.Context, id string, now time.Time) (Job, error)

	// List returns at most limit of an account's jobs that match the filter at now (see Job.At), highest id
	// first, starting below the id after, or with the highest if it is empty. The id need not exist. It may
	// return fewer jobs, or none, even if more follow. next is the id to continue from, and is empty at the
	// end. A job that was accepted within the last second may be missing.
	List(
		ctx context.Context, account string, filter Filter, after string, limit int, now time.Time,
	) (jobs []Job, next string, err error)

	// Forget deletes the record of a job that has ended. It does not change any other job.
	Forget(ctx context.Context, id string) error

	// Backlog returns the work queued ahead of a new job on the lane.
	Backlog(ctx context.Context, lane Lane, account string) (Backlog, error)

	Failer
}

// Failer ends jobs with a failure, from within a run and from outside.
type Failer interface {
	// Fail ends the job with a failure. An empty nonce ends it in any run, for a cancellation and the
	// reaper. The job's holds return to their budgets. A repeated Fail succeeds.
	//
	// Errors: fault.NotFound; fault.Conflict if the job has ended, or the run is no longer current.
	Fail(ctx context.Context, id, nonce string, failure Failure, now time.Time) error
}

// Runs are a worker's writes to the records of jobs.
type Runs interface {
	// Start starts a run: the job is processing, its runs increase by one, and nonce, which is not
	// empty, names the run until it ends or another run starts. A Start that finds its own nonce
	// succeeds and does not count again.
	//
	// Errors: fault.NotFound; fault.Conflict if the job has ended, ErrOverdue past its deadline,
	// ErrNoRunsLeft after MaxRuns runs. An error changes nothing.
	Start(ctx context.Context, id, nonce string, now time.Time) (Job, error)

	// Progress records the run's progress, limited to 0 to 1. Lower progress than recorded is not written.
	//
	// Errors: fault.Conflict if the run is no longer current. The worker must then stop.
	Progress(ctx context.Context, id, nonce string, fraction float64) error

	// Release undoes the start of a run: it does not count, and its nonce is void. The job stays
	// processing. It does nothing if the run is no longer current.
	Release(ctx context.Context, id, nonce string) error

	// Complete ends the job with its result and a progress of 1. In the same commit it adds Billed
	// to the usage of the account, once for each job, and settles the job's holds by the billed
	// amounts. A repeated Complete succeeds.
	//
	// Errors: fault.Conflict if the run is no longer current, or the deadline is not ahead of now;
	// nothing changes then.
	Complete(ctx context.Context, id, nonce string, result Result, now time.Time) error

	Failer
}

// Retention is the part of the store for the sweeper on one machine. In AWS the store's TTL and the
// bucket's lifecycle do its work.
type Retention interface {
	// Overdue returns at most limit ids of open jobs whose deadline is not ahead of now.
	Overdue(ctx context.Context, now time.Time, limit int) ([]string, error)
	// Ended returns at most limit jobs that ended before the time, in the order of ids, starting
	// after the id.
	Ended(ctx context.Context, before time.Time, after string, limit int) ([]Job, error)
	// Known reports whether there is a record of the job.
	Known(ctx context.Context, id string) (bool, error)
}

type OpenJobs struct {
	Lane   Lane
	Status Status
	Count  int
	// Oldest is when the first of them was created.
	Oldest time.Time
}
