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

type event struct {
	Records []struct {
		Stream *events.DynamoDBStreamRecord `json:"dynamodb"`

		Message    string            `json:"messageId"`
		Body       string            `json:"body"`
		Attributes map[string]string `json:"attributes"`
	}
}

type answer struct {
	Failures []failure `json:"batchItemFailures"`
}

type failure struct {
	ID string `json:"itemIdentifier"`
}

type handler struct {
	queue     *sqsqueue.ScheduledAttempts
	deliverer *webhook.Deliverer
	now       func() time.Time
	logger    *slog.Logger
}

// handle handles records of a stream or messages of the queue, and returns the failed ones. If no record succeeded, it returns
// an error, because Lambda's metric of errors, which an alarm watches, does not count failed records.
func (h *handler) handle(ctx context.Context, e event) (answer, error) {
	var (
		failed  answer
		fault   error
		mu      sync.Mutex
		sending sync.WaitGroup
	)
	for i, record := range e.Records {
		if record.Stream != nil {
			if err := h.happened(ctx, record.Stream); err != nil {
				h.logger.ErrorContext(ctx, "cannot queue a webhook", "error", err)
				if i == 0 {
					return answer{}, err
				}
				// The stream retries from this record. Earlier records are done.
				return answer{[]failure{{record.Stream.SequenceNumber}}}, nil
			}
			continue
		}
		// Deliver concurrently, because each receiver may use up its entire time limit.
		sending.Go(func() {
			received, _ := strconv.Atoi(record.Attributes["ApproximateReceiveCount"])
			if err := h.deliver(ctx, record.Body, received > 1); err != nil {
				h.logger.ErrorContext(ctx, "cannot deliver a webhook", "message", record.Message, "error", err)
				mu.Lock()
				defer mu.Unlock()
				failed.Failures, fault = append(failed.Failures, failure{record.Message}), err
			}
		})
	}
	sending.Wait()
	if len(failed.Failures) == len(e.Records) {
		return answer{}, fault
	}
	return failed, nil
}

// happened queues the first delivery, so that the stream does not wait for slow receivers.
func (h *handler) happened(ctx context.Context, change *events.DynamoDBStreamRecord) error {
	for _, read := range []func(map[string]events.DynamoDBAttributeValue) (webhook.ScheduledAttempt, bool){
		dynamo.EndedWithWebhook, dynamo.NewWarning,
	} {
		if attempt, is := read(change.NewImage); is {
			return h.queue.Send(ctx, attempt, h.now())
		}
	}
	return nil
}

// clockSkew is the maximum difference between the clocks of two functions.
const clockSkew = time.Minute

// deliver attempts a delivery and queues the next attempt. If the parameter `again` is true, SQS delivered the
// message before: an earlier call may have made the attempt and then died.
func (h *handler) deliver(ctx context.Context, body string, again bool) error {
	attempt, err := sqsqueue.ReadScheduledAttempt(body)
	if err != nil {
		return err
	}
	now := h.now()
	if latest := now.Add(webhook.LongestWait + clockSkew); attempt.At.After(latest) {
		// With a time too far in the future, this function would reschedule the attempt again and again.
		attempt.At = latest
	}
	if attempt.At.After(now) {
		return h.queue.Send(ctx, attempt, h.now())
	}
	next, follows, err := h.deliverer.Deliver(ctx, attempt)
	if err == nil && !follows && again {
		next, follows, err = h.deliverer.Follow(ctx, attempt)
	}
	if err != nil || !follows {
		return err
	}
	return h.queue.Send(ctx, next, h.now())
}
