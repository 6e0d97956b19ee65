package job

import (
	"context"
	"time"

	"cutroom/shared/domain/budget"
)

// Store keeps job records. Its behaviour is specified here and verified by the
// suite in jobtest, which every adapter runs.
//
// Every write is conditional on the record at that moment, so that a late,
// repeated or stale write changes nothing. Times come from the caller and are
// kept to the millisecond.
type Store interface {
	// Accept records a pending job and hands it to the queue of its lane, as
	// one commit: after nil both survive a crash, after an error neither is
	// seen. It adds Usage to the usage of the account, and takes the claims from the
	// counters of budgets, all or none, which are then the Holds of the job. A second
	// Accept of the same id succeeds and changes nothing.
	//
	// Errors: fault.Limited when the account has limit or more jobs pending or
	// processing (limit 0 means no limit); fault.Exhausted when a counter has too little
	// left for its claim. Both are exact under concurrency. Keys of an account may have
	// different limits; jobs that concurrent calls with another limit add need not be counted.
	Accept(ctx context.Context, j Job, limit int, claims ...budget.Claim) error

	// Get returns the job. The caller checks which account it belongs to.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (Job, error)

	// Expire ends a job that is past its deadline as failed with the timeout
	// failure, completed at its deadline, and returns it as it then is. A job
	// that has ended, or has time left at now, stays as it is. What the job holds of
	// budgets returns to them.
	//
	// Errors: fault.NotFound.
	Expire(ctx context.Context, id string, now time.Time) (Job, error)

	// List returns an account's jobs that match the filter as they are at now
	// (see Job.At), in the descending order of their ids, at most limit,
	// beginning below the id after; an empty one begins with the highest. There
	// need not be a job with that id. It may return fewer than limit jobs, even
	// none, while more follow; next is then the id to continue from, and empty
	// when nothing follows. A job that was accepted within the last second may
	// still be missing.
	List(
		ctx context.Context, account string, filter Filter, after string, limit int, now time.Time,
	) (jobs []Job, next string, err error)

	// Forget deletes the record of a job that has ended; any other is left alone.
	Forget(ctx context.Context, id string) error

	// Backlog returns the work queued ahead of a new job on the lane. The account's
	// limit is that of Accept, by which a store may lay out the account's jobs.
	Backlog(ctx context.Context, lane Lane, account string, limit int) (Backlog, error)

	Failer
}

// Failer ends jobs with a failure, from within a run and from outside.
type Failer interface {
	// Fail ends the job with a failure. An empty nonce ends it whatever the
	// run, as a cancellation and the reaper of lost jobs do. What the job holds of
	// budgets returns to them.
	//
	// Errors: fault.NotFound; fault.Conflict when the job has ended, or the run
	// is no longer its own. A Fail that was made before succeeds.
	Fail(ctx context.Context, id, nonce string, failure Failure, now time.Time) error
}

// Runs is what a worker does to the records of jobs.
type Runs interface {
	// Start starts a run: the job is processing, its runs are one more, and
	// nonce, which is not empty, names the run until it ends or another run
	// starts. A Start that finds its own nonce on the record succeeds and is
	// not counted again.
	//
	// Errors: fault.NotFound; fault.Conflict when the job has ended, ErrOverdue
	// when its deadline is not ahead, ErrNoRunsLeft when it has started MaxRuns
	// runs. On error nothing changes.
	Start(ctx context.Context, id, nonce string, now time.Time) (Job, error)

	// Progress records the run's progress, a fraction that is clamped to 0 to
	// 1; progress below the recorded one is not written.
	//
	// Errors: fault.Conflict when the run is no longer the job's own: it has
	// ended, or another run has started. The worker then stops.
	Progress(ctx context.Context, id, nonce string, fraction float64) error

	// Release undoes the start of a run: it does not count, and its nonce is
	// void. The job stays processing. A run that is no longer the job's own is
	// left alone, without an error.
	Release(ctx context.Context, id, nonce string) error

	// Complete ends the job with its result; its progress is then 1. As one commit with
	// that, it adds Billed to the usage of the account, once for each job and only for
	// jobs that complete, and settles the job's holds of budgets by what is billed.
	//
	// Errors: fault.Conflict when the run is no longer the job's own, or the
	// deadline is not ahead of now; nothing changes then. A Complete that
	// was made before succeeds.
	Complete(ctx context.Context, id, nonce string, result Result, now time.Time) error

	Failer
}

// Retention is what the sweeper needs of records, on one machine. In AWS the
// store's TTL and the bucket's lifecycle do the sweeper's work.
type Retention interface {
	// Overdue returns ids of jobs that have not ended and whose deadline is not
	// ahead of now, at most limit.
	Overdue(ctx context.Context, now time.Time, limit int) ([]string, error)
	// Ended returns jobs that ended before the time and after the id, in the
	// order of their ids, at most limit.
	Ended(ctx context.Context, before time.Time, after string, limit int) ([]Job, error)
	// Known reports whether there is a record of the job.
	Known(ctx context.Context, id string) (bool, error)
}

// OpenJobs are the jobs of a lane that are pending, or processing.
type OpenJobs struct {
	Lane   Lane
	Status Status
	Count  int
	// Oldest is when the first of them was created.
	Oldest time.Time
}
