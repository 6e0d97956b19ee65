package main

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/domain/webhook"
)

// event is records of the jobs' stream, or else messages of the queue.
type event struct {
	Records []struct {
		Stream *events.DynamoDBStreamRecord `json:"dynamodb"`

		Message    string            `json:"messageId"`
		Body       string            `json:"body"`
		Attributes map[string]string `json:"attributes"`
	}
}

// answer tells what could not be dealt with, for both alike.
type answer struct {
	Failures []failure `json:"batchItemFailures"`
}

type failure struct {
	ID string `json:"itemIdentifier"`
}

// handler makes the attempts that events tell of.
type handler struct {
	queue     *sqsqueue.ScheduledAttempts
	deliverer *webhook.Deliverer
	now       func() time.Time
	logger    *slog.Logger
}

func (h *handler) handle(ctx context.Context, told event) (answer, error) {
	var (
		failed  answer
		mu      sync.Mutex
		sending sync.WaitGroup
	)
	for _, record := range told.Records {
		if record.Stream != nil {
			if err := h.ended(ctx, record.Stream); err != nil {
				h.logger.ErrorContext(ctx, "queue a webhook", "error", err)
				// The stream goes on from here; what came before is done.
				return answer{[]failure{{record.Stream.SequenceNumber}}}, nil
			}
			continue
		}
		// At once: each receiver may take as long as it is let.
		sending.Go(func() {
			received, _ := strconv.Atoi(record.Attributes["ApproximateReceiveCount"])
			if err := h.deliver(ctx, record.Body, received > 1); err != nil {
				h.logger.ErrorContext(ctx, "deliver a webhook", "message", record.Message, "error", err)
				mu.Lock()
				defer mu.Unlock()
				failed.Failures = append(failed.Failures, failure{record.Message})
			}
		})
	}
	sending.Wait()
	return failed, nil
}

// ended queues the first attempt of a job that has ended. Receivers may be slow,
// and the stream is not to wait for them.
func (h *handler) ended(ctx context.Context, change *events.DynamoDBStreamRecord) error {
	turn, ended := dynamo.EndedWithWebhook(change.NewImage)
	if !ended {
		return nil
	}
	return h.queue.Send(ctx, turn, h.now())
}

// clockSkew is how far the clocks of two functions may be apart.
const clockSkew = time.Minute

// deliver makes the attempt of a message and queues the next. A message that comes
// again may be of a call that made its attempt and died.
func (h *handler) deliver(ctx context.Context, body string, again bool) error {
	turn, err := sqsqueue.ReadScheduledAttempt(body)
	if err != nil {
		return err
	}
	now := h.now()
	if latest := now.Add(webhook.LongestWait + clockSkew); turn.At.After(latest) {
		// Such a turn would start this function again and again, for as long as it says.
		turn.At = latest
	}
	if turn.At.After(now) {
		return h.queue.Send(ctx, turn, h.now())
	}
	next, follows, err := h.deliverer.Deliver(ctx, turn)
	if err == nil && !follows && again {
		next, follows, err = h.deliverer.Follow(ctx, turn)
	}
	if err != nil || !follows {
		return err
	}
	return h.queue.Send(ctx, next, h.now())
}
