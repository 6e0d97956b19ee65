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

// Complete writes the result to the record before it reports to the execution, which then has nothing left to write.
// If the worker dies in between, the execution times out and finds that the job has ended.
//
// For a failure, the execution writes the record. The token works only once, and a run that has lost the job must not
// use it. So Fail reads the record first. If the token has already been used, Fail writes the record itself, under
// the same conditions.
type delivery struct {
	Message
	queue *Queue
	url   string
	// receipt is different each time the message is received.
	receipt string
	body    string
}

var _ worker.Delivery = (*delivery)(nil)

func (d *delivery) JobID() string { return d.Job }

func (d *delivery) Extend(ctx context.Context, lease time.Duration) error {
	return d.setVisibility(ctx, "extend a lease", lease)
}

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
		// Ignore the error, because the mean run time does not need every run.
		d.queue.Logger.Warn("cannot record a run time", "job", d.Job, "error", err)
	}
	return d.conclude(ctx)
}

// conclude reports success to the execution, which may already have ended.
func (d *delivery) conclude(ctx context.Context) error {
	if err := d.queue.Tasks.Succeed(ctx, d.Token); err != nil && !fault.Is(err, fault.Conflict) {
		return err
	}
	d.settle(ctx)
	return nil
}

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

// own returns the job if it has ended or if the nonce belongs to its current run. An empty nonce matches any run.
//
// Errors: fault.NotFound if the job has no record, after dropping the message; fault.Conflict if
// another run owns the job.
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

func (d *delivery) settleEnded(ctx context.Context) error {
	d.settle(ctx)
	return job.ErrEnded
}

// settle deletes the message. If it cannot, the message is received again when its lease ends, and deleted then.
func (d *delivery) settle(ctx context.Context) {
	if err := d.Drop(ctx); err != nil {
		d.queue.Logger.Warn("cannot delete a message", "job", d.Job, "error", err)
	}
}

func (d *delivery) Drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err := d.queue.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &d.url, ReceiptHandle: &d.receipt})
	if err != nil && !isStale(err) {
		return fmt.Errorf("sqs: delete a message: %w", err)
	}
	return nil
}

func isStale(err error) bool {
	var (
		notLeased *types.MessageNotInflight
		invalid   *types.ReceiptHandleIsInvalid
		code      interface{ ErrorCode() string }
	)
	// SQS reports an expired receipt with its general code for invalid parameters.
	return errors.As(err, &notLeased) || errors.As(err, &invalid) ||
		errors.As(err, &code) && code.ErrorCode() == "InvalidParameterValue"
}
