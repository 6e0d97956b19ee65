package worker

import (
	"context"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// Queue distributes jobs fairly: one account's first job does not wait for all jobs of another account.
type Queue interface {
	// Receive waits for a job and leases it for the given time. Errors: the context's error.
	Receive(ctx context.Context, lane job.Lane, lease time.Duration) (Delivery, error)
}

// LeaseLost returns the error for a job whose lease belongs to another worker. The cause, if any, is logged.
func LeaseLost(cause error) *fault.Error {
	return fault.Wrap(cause, fault.Conflict, "Another worker has the lease.")
}

// Delivery is a received job. It stays leased until it is settled with Complete, Fail, Nack or
// Drop, or until the lease expires and another worker receives it.
type Delivery interface {
	JobID() string
	// Extend makes the lease expire after the given time, counted from now. Errors: fault.Conflict
	// if another worker has received the job.
	Extend(ctx context.Context, lease time.Duration) error
	// Complete settles the delivery even if the job has already ended. Errors: as for job.Runs.Complete.
	Complete(ctx context.Context, nonce string, result job.Result) error
	// Fail records a failure (of the run, or of the job if the nonce is empty) and settles the
	// delivery. Errors: as for job.Runs.Fail.
	Fail(ctx context.Context, nonce string, failure job.Failure) error
	// Nack returns the job to the queue after the delay.
	Nack(ctx context.Context, delay time.Duration) error
	// Drop settles the delivery of a job that needs no further work.
	Drop(ctx context.Context) error
}
