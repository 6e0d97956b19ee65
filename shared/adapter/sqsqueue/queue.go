// Package sqsqueue hands out jobs from SQS queues, one for each lane, to workers. A
// message is leased by its visibility timeout and carries the task token by which
// the worker reports to the job's execution, which then writes the job's end.
//
// The queues are standard queues with the account as message group; SQS is fair between
// groups. They may deliver a message twice; the record's current run then decides which
// worker has the job.
package sqsqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"cutroom/shared/domain/job"
	"cutroom/shared/platform/awsclient"
	"cutroom/shared/service/worker"
)

// Jobs are the records of jobs as a delivery needs them.
type Jobs interface {
	// Get returns the job.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (job.Job, error)
	// Complete and Fail are those of job.Runs; Fail is for a report that no execution
	// takes any more.
	Complete(ctx context.Context, id, nonce string, result job.Result, now time.Time) error
	Fail(ctx context.Context, id, nonce string, failure job.Failure, now time.Time) error
	// RecordRunTime records how long a completed job took.
	RecordRunTime(ctx context.Context, j job.Job, took time.Duration) error
}

// Tasks reports to the executions of jobs.
type Tasks interface {
	// Succeed reports that the job's record has its result.
	//
	// Errors: fault.Conflict when the execution has gone on.
	Succeed(ctx context.Context, token string) error
	// Fail reports a failure of the run, or of the job when the nonce is empty.
	//
	// Errors: as Succeed.
	Fail(ctx context.Context, token, nonce string, failure job.Failure) error
}

// Config is what a [Queue] needs.
type Config struct {
	AWS aws.Config
	// URLs are those of the lanes' queues.
	URLs  map[job.Lane]string
	Jobs  Jobs
	Tasks Tasks
	// PollTime is how long SQS waits for a message before it answers that there is
	// none, in whole seconds up to 20; 0 means DefaultPollTime. Close waits that long.
	PollTime time.Duration
	// Now is the clock.
	Now    func() time.Time
	Logger *slog.Logger
}

// Queue is a worker.Queue. Its maker must close it.
type Queue struct {
	Config
	client *sqs.Client
	polls  sync.WaitGroup
}

var _ worker.Queue = (*Queue)(nil)

// DefaultPollTime makes an idle slot of a worker poll six times a minute.
const DefaultPollTime = 10 * time.Second

// New returns a queue.
func New(c Config) *Queue {
	c.PollTime = cmp.Or(c.PollTime, DefaultPollTime)
	return &Queue{Config: c, client: newClient(c.AWS, c.PollTime)}
}

func newClient(config aws.Config, wait time.Duration) *sqs.Client {
	return sqs.NewFromConfig(config, func(o *sqs.Options) {
		o.Retryer = awsclient.Retryer()
		o.HTTPClient = awsclient.HTTPClient(config, wait)
	})
}

// Close waits until no call that could still lease a message is in progress, which takes
// a little longer than PollTime at most.
func (q *Queue) Close() { q.polls.Wait() }

// Receive waits for a job of the lane and leases it for the time, rounded up to
// seconds.
//
// Errors: the context's if it ends first.
func (q *Queue) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	url, ok := q.URLs[lane]
	if !ok {
		return nil, fmt.Errorf("sqs: receive: no queue for the lane %q", lane)
	}
	if lease <= 0 {
		return nil, fmt.Errorf("sqs: receive: a lease of %v", lease)
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := q.poll(ctx, url, lease)
		switch {
		case ctx.Err() != nil && d == nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, fmt.Errorf("sqs: receive: %w", err)
		case d == nil:
			continue
		}
		if d.Message, err = ReadMessage(d.body); err != nil {
			// It is released at once, and so soon ends in the dead-letter queue, where a
			// person finds it.
			q.Logger.Error("receive a message that is not about a job", "queue", url, "error", err)
			if err := d.Nack(ctx, 0); err != nil {
				q.Logger.Error("return a message", "queue", url, "error", err)
			}
			continue
		}
		return d, nil
	}
}

// poll asks once for a message and returns nil if there is none.
//
// The call continues when the context ends, and a message that it still receives is
// released: SQS may lease a message to a caller that has hung up, and nobody else would
// receive it for the whole lease.
func (q *Queue) poll(ctx context.Context, url string, lease time.Duration) (*delivery, error) {
	type answer struct {
		delivery *delivery
		err      error
	}
	wait := q.PollTime
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end))
	}
	answers := make(chan answer, 1)
	q.polls.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.PollTime+awsclient.CallTime)
		defer cancel()
		d, err := q.receive(ctx, url, lease, wait)
		answers <- answer{d, err}
	})
	select {
	case a := <-answers:
		return a.delivery, a.err
	case <-ctx.Done():
	}
	q.polls.Go(func() {
		late := <-answers
		if late.delivery == nil {
			return
		}
		if err := late.delivery.Nack(context.WithoutCancel(ctx), 0); err != nil {
			q.Logger.Error("return a message", "queue", url, "error", err)
		}
	})
	return nil, ctx.Err()
}

func (q *Queue) receive(ctx context.Context, url string, lease, wait time.Duration) (*delivery, error) {
	received, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 1, VisibilityTimeout: wholeSeconds(lease),
		WaitTimeSeconds: wholeSeconds(wait),
	})
	if err != nil || len(received.Messages) == 0 {
		return nil, err
	}
	message := received.Messages[0]
	return &delivery{queue: q, url: url, receipt: aws.ToString(message.ReceiptHandle),
		body: aws.ToString(message.Body)}, nil
}

// noReceipt is no receipt that SQS has ever handed out.
const noReceipt = "none"

// Reach checks that the queue of a lane is there and that the caller may work on it. It
// changes nothing: it names a receipt that SQS does not know, and is told so.
//
// Errors: there is no such queue; it may not be worked on; AWS's.
func (q *Queue) Reach(ctx context.Context, lane job.Lane) error {
	url, ok := q.URLs[lane]
	if !ok {
		return fmt.Errorf("sqs: reach: no queue for the lane %q", lane)
	}
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err := q.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &url, ReceiptHandle: aws.String(noReceipt),
	})
	var unknown *types.ReceiptHandleIsInvalid
	if errors.As(err, &unknown) {
		return nil
	}
	if err == nil {
		return errors.New("sqs: reach: a receipt was taken that is none")
	}
	return fmt.Errorf("sqs: reach: %w", err)
}

// wholeSeconds rounds up, because SQS counts in seconds and no lease may end early.
func wholeSeconds(d time.Duration) int32 { return int32((max(d, 0) + time.Second - 1) / time.Second) }

// Lengths reads the lengths of queues.
type Lengths struct {
	client *sqs.Client
	urls   map[job.Lane]string
}

// NewLengths returns the lengths of the lanes' queues, by their URLs.
func NewLengths(config aws.Config, urls map[job.Lane]string) *Lengths {
	return &Lengths{newClient(config, 0), urls}
}

// Length returns about how many messages of a lane wait or are leased. SQS's count may
// lag by up to a minute.
func (l *Lengths) Length(ctx context.Context, lane job.Lane) (int, error) {
	waiting, leased, err := l.Depth(ctx, lane)
	return waiting + leased, err
}

// Depth returns about how many messages of a lane wait, and how many are leased: one call.
// SQS's counts may lag by up to a minute.
func (l *Lengths) Depth(ctx context.Context, lane job.Lane) (waiting, leased int, err error) {
	url, ok := l.urls[lane]
	if !ok {
		return 0, 0, fmt.Errorf("sqs: no queue for the lane %q", lane)
	}
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	names := []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	}
	found, err := l.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if err != nil {
		return 0, 0, fmt.Errorf("sqs: read the length of a queue: %w", err)
	}
	for _, name := range names {
		n, err := strconv.Atoi(found.Attributes[string(name)])
		if err != nil {
			return 0, 0, fmt.Errorf("sqs: read the length of a queue: %w", err)
		}
		if name == types.QueueAttributeNameApproximateNumberOfMessagesNotVisible {
			leased += n
		} else {
			waiting += n
		}
	}
	return waiting, leased, nil
}
