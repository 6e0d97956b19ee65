// Package sqsqueue delivers jobs to workers from SQS queues, one per lane. A message's visibility timeout is its
// lease. Each message contains a task token. With it, the worker reports the outcome to the job's execution.
//
// The queues are standard queues with the account as message group. They may deliver a message
// twice. In that case the current run in the record decides which worker has the job.
package sqsqueue

import (
	"cmp"
	"context"
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

type Jobs interface {
	Get(ctx context.Context, id string) (job.Job, error)
	// Complete and Fail are as in job.Runs. Fail is called if the token was already used.
	Complete(ctx context.Context, id, nonce string, result job.Result, now time.Time) error
	Fail(ctx context.Context, id, nonce string, failure job.Failure, now time.Time) error
	RecordRunTime(ctx context.Context, j job.Job, took time.Duration) error
}

type Tasks interface {
	// Succeed reports that the result is in the job's record.
	//
	// Errors: fault.Conflict if the execution is no longer waiting.
	Succeed(ctx context.Context, token string) error
	// Fail reports that the run failed, or that the job failed if the nonce is empty.
	//
	// Errors: as for Succeed.
	Fail(ctx context.Context, token, nonce string, failure job.Failure) error
}

type Config struct {
	AWS   aws.Config
	URLs  map[job.Lane]string
	Jobs  Jobs
	Tasks Tasks
	// PollTime is how long SQS waits for a message, in whole seconds up to 20. 0 means DefaultPollTime. Close waits
	// just as long.
	PollTime time.Duration
	Now      func() time.Time
	Logger   *slog.Logger
}

// A Queue must be closed after use.
type Queue struct {
	Config
	client *sqs.Client
	polls  sync.WaitGroup
}

var _ worker.Queue = (*Queue)(nil)

// With DefaultPollTime, an idle slot polls six times a minute.
const DefaultPollTime = 10 * time.Second

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

// Close waits for calls that could still lease a message. That takes little longer than PollTime.
func (q *Queue) Close() { q.polls.Wait() }

func (q *Queue) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	url, ok := q.URLs[lane]
	if !ok {
		return nil, fmt.Errorf("sqs: receive: no queue for the lane %q", lane)
	}
	if lease <= 0 {
		return nil, fmt.Errorf("sqs: receive: invalid lease %v", lease)
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
			// The message soon reaches the dead-letter queue, where an operator finds it.
			q.Logger.Error("received a message that does not name a job", "queue", url, "error", err)
			if err := d.Nack(ctx, 0); err != nil {
				q.Logger.Error("cannot return a message", "queue", url, "error", err)
			}
			continue
		}
		return d, nil
	}
}

// poll returns nil if the queue is empty. Its SQS call continues after ctx ends, and a message
// received then is released. Otherwise SQS could lease a message to a disconnected caller, and no
// worker would receive it until the lease expires.
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
			q.Logger.Error("cannot return a message", "queue", url, "error", err)
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

// Round up, so that no lease ends early.
func wholeSeconds(d time.Duration) int32 { return int32((max(d, 0) + time.Second - 1) / time.Second) }

type Lengths struct {
	client *sqs.Client
	urls   map[job.Lane]string
}

func NewLengths(config aws.Config, urls map[job.Lane]string) *Lengths {
	return &Lengths{newClient(config, 0), urls}
}

// Length and Depth may lag by up to a minute.
func (l *Lengths) Length(ctx context.Context, lane job.Lane) (int, error) {
	waiting, leased, err := l.Depth(ctx, lane)
	return waiting + leased, err
}

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
