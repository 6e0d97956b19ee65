package sqsqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/awsclient"
	"cutroom/shared/service/worker"
)

// delivery is a leased message.
//
// A result is written to the record, on the run's condition, before the execution is
// told: the execution then has nothing left to write, which saves a transition. Should
// the worker die in between, the execution times out, and its own write finds that the
// job has ended.
//
// A failure is the execution's to write. Its report looks at the record before it takes
// the token, as the token is taken once: a run that has lost the job must leave it to
// the one that has it. When the token is taken all the same (another run may have
// started in between, and the execution have failed on that run's condition), the
// report writes to the record itself, on the same conditions.
type delivery struct {
	Message
	queue *Queue
	url   string
	// receipt is that of this receive; each receive has its own.
	receipt string
	body    string
}

var _ worker.Delivery = (*delivery)(nil)

// JobID returns the id of the job.
func (d *delivery) JobID() string { return d.Job }

// Extend makes the lease last for the time from now, rounded up to seconds.
//
// Errors: fault.Conflict if the message is settled, or no longer leased by this
// receive.
func (d *delivery) Extend(ctx context.Context, lease time.Duration) error {
	return d.setVisibility(ctx, "extend a lease", lease)
}

// Nack puts the job back on the queue for another worker, after the delay. It does
// nothing if another worker has received the job since.
func (d *delivery) Nack(ctx context.Context, delay time.Duration) error {
	err := d.setVisibility(ctx, "return a message", delay)
	if fault.Is(err, fault.Conflict) {
		return nil
	}
	return err
}

func (d *delivery) setVisibility(ctx context.Context, what string, visibleIn time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err := d.queue.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &d.url, ReceiptHandle: &d.receipt, VisibilityTimeout: wholeSeconds(visibleIn),
	})
	if isStale(err) {
		return worker.LeaseLost(err)
	}
	if err != nil {
		return fmt.Errorf("sqs: %s: %w", what, err)
	}
	return nil
}

// Complete ends the job with the result of the run, tells its execution and settles.
//
// Errors: fault.Conflict when the run is no longer the job's own, or the job has
// ended or is past its deadline.
func (d *delivery) Complete(ctx context.Context, nonce string, result job.Result) error {
	j, err := d.own(ctx, nonce)
	switch {
	case fault.Is(err, fault.NotFound):
		return fault.Wrap(err, fault.Conflict, "The job is unknown.")
	case err != nil:
		return err
	case j.Status == job.Completed:
		return d.conclude(ctx)
	case j.Status.Terminal():
		return d.settleEnded(ctx)
	case !d.queue.Now().Before(j.Deadline):
		return job.ErrOverdue
	}
	if err := d.queue.Jobs.Complete(ctx, d.Job, nonce, result, d.queue.Now()); err != nil {
		return err
	}
	if err := d.queue.Jobs.RecordRunTime(ctx, j, d.queue.Now().Sub(j.StartedAt)); err != nil {
		// One of many run times that make the mean may be missing.
		d.queue.Logger.Warn("record a run time", "job", d.Job, "error", err)
	}
	return d.conclude(ctx)
}

// conclude tells the execution of a job that has its result, and settles. One that has
// gone on is done with the job as well.
func (d *delivery) conclude(ctx context.Context) error {
	if err := d.queue.Tasks.Succeed(ctx, d.Token); err != nil && !fault.Is(err, fault.Conflict) {
		return err
	}
	d.settle(ctx)
	return nil
}

// Fail reports a failure and settles the delivery.
//
// Errors: fault.NotFound; fault.Conflict when the run is no longer the job's own,
// or the job has ended.
func (d *delivery) Fail(ctx context.Context, nonce string, failure job.Failure) error {
	j, err := d.own(ctx, nonce)
	switch {
	case err != nil:
		return err
	case j.Status == job.Failed && j.Nonce == nonce && *j.Failure == failure:
		d.settle(ctx)
		return nil
	case j.Status.Terminal():
		return d.settleEnded(ctx)
	}
	err = d.queue.Tasks.Fail(ctx, d.Token, nonce, failure)
	if fault.Is(err, fault.Conflict) {
		err = d.queue.Jobs.Fail(ctx, d.Job, nonce, failure, d.queue.Now())
	}
	if err != nil {
		return err
	}
	d.settle(ctx)
	return nil
}

// own returns the job if it has ended, or if the nonce is that of its current run. A
// report on the whole job has no nonce and fits any run.
//
// Errors: fault.NotFound if there is no record, and the message is dropped;
// fault.Conflict if another run has the job.
func (d *delivery) own(ctx context.Context, nonce string) (job.Job, error) {
	j, err := d.queue.Jobs.Get(ctx, d.Job)
	if fault.Is(err, fault.NotFound) {
		d.settle(ctx)
		return job.Job{}, err
	}
	if err != nil {
		return job.Job{}, err
	}
	if !j.Status.Terminal() && nonce != "" && j.Nonce != nonce {
		return job.Job{}, job.ErrNotOwn
	}
	return j, nil
}

// settleEnded drops the message of a job that has ended some other way.
func (d *delivery) settleEnded(ctx context.Context) error {
	d.settle(ctx)
	return job.ErrEnded
}

// settle drops the message of a job that needs nothing more. If that fails, the message
// is received again when its lease ends, and dropped then.
func (d *delivery) settle(ctx context.Context) {
	if err := d.Drop(ctx); err != nil {
		d.queue.Logger.Warn("drop a message", "job", d.Job, "error", err)
	}
}

// Drop settles a delivery whose job needs nothing more, whoever has leased it.
func (d *delivery) Drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err := d.queue.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &d.url, ReceiptHandle: &d.receipt})
	if err != nil && !isStale(err) {
		return fmt.Errorf("sqs: drop a message: %w", err)
	}
	return nil
}

// isStale reports whether a receipt belongs to a lease that has ended.
func isStale(err error) bool {
	var (
		notLeased *types.MessageNotInflight
		invalid   *types.ReceiptHandleIsInvalid
		code      interface{ ErrorCode() string }
	)
	// SQS answers an expired receipt with the code for any invalid parameter.
	return errors.As(err, &notLeased) || errors.As(err, &invalid) ||
		errors.As(err, &code) && code.ErrorCode() == "InvalidParameterValue"
}
