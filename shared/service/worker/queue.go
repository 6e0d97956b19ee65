package worker

import (
	"context"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// Queue hands out jobs. It is fair between accounts: an account with many waiting
// jobs does not keep another's first one waiting for all of them.
type Queue interface {
	// Receive waits for a job of the lane and leases it for the time. It
	// returns the context's error when the context ends first.
	Receive(ctx context.Context, lane job.Lane, lease time.Duration) (Delivery, error)
}

// LeaseLost returns the error for extending a lease that is another worker's by now.
// The cause, for the log, may be nil.
func LeaseLost(cause error) *fault.Error {
	return fault.Wrap(cause, fault.Conflict, "The lease is another worker's.")
}

// Delivery is a job that a worker has received. It is leased until it is settled
// by Complete, Fail, Nack or Drop, or until the lease ends; another worker then
// receives the job.
type Delivery interface {
	// JobID returns the job's id.
	JobID() string
	// Extend makes the lease last for the time from now.
	//
	// Errors: fault.Conflict when another worker has received the job since.
	Extend(ctx context.Context, lease time.Duration) error
	// Complete reports the result of the run and settles the delivery.
	//
	// Errors: as job.Runs' Complete; the delivery is then settled too when the
	// job has ended.
	Complete(ctx context.Context, nonce string, result job.Result) error
	// Fail reports a failure (of the run, or of the job when the nonce is
	// empty) and settles the delivery.
	//
	// Errors: as job.Runs' Fail.
	Fail(ctx context.Context, nonce string, failure job.Failure) error
	// Nack puts the job back on the queue for another worker, after the delay.
	Nack(ctx context.Context, delay time.Duration) error
	// Drop settles the delivery of a job that needs nothing more.
	Drop(ctx context.Context) error
}
