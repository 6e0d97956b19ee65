package worker

import (
	"context"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// Queue distributes jobs fairly among accounts: an account's first job does not wait for all jobs
// of another account.
type Queue interface {
	// Receive waits for a job of the lane and leases it for the given time. It returns the context's
	// error if the context ends first.
	Receive(ctx context.Context, lane job.Lane, lease time.Duration) (Delivery, error)
}

// LeaseLost returns the error for extending a lease that another worker has. The cause is logged
// and may be nil.
func LeaseLost(cause error) *fault.Error {
	return fault.Wrap(cause, fault.Conflict, "Another worker has the lease.")
}

// Delivery is a received job. It is leased until it is settled with Complete, Fail, Nack or Drop,
// or until the lease ends. After that, another worker receives the job.
type Delivery interface {
	JobID() string
	// Extend makes the lease end when the given time has passed.
	//
	// Errors: fault.Conflict if another worker has received the job in the meantime.
	Extend(ctx context.Context, lease time.Duration) error
	// Complete reports the result of the run and settles the delivery.
	//
	// Errors: as job.Runs' Complete. If the job has ended, the delivery is settled anyway.
	Complete(ctx context.Context, nonce string, result job.Result) error
	// Fail reports a failure (of the run, or of the job if the nonce is empty) and settles the delivery.
	//
	// Errors: as job.Runs' Fail.
	Fail(ctx context.Context, nonce string, failure job.Failure) error
	// Nack returns the job to the queue for another worker, after the delay.
	Nack(ctx context.Context, delay time.Duration) error
	// Drop settles the delivery of a job that needs no more work.
	Drop(ctx context.Context) error
}
