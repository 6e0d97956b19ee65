package sqsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"cutroom/shared/domain/webhook"
	"cutroom/shared/platform/awsclient"
)

// longestDelay is SQS's limit. A message for an attempt that is due later is received early and sent again.
const longestDelay = 15 * time.Minute

type ScheduledAttempts struct {
	client *sqs.Client
	url    string
}

func NewScheduledAttempts(config aws.Config, url string) *ScheduledAttempts {
	return &ScheduledAttempts{newClient(config, 0), url}
}

// Send queues an attempt until it is due, but for at most longestDelay. A retry may queue it twice.
func (q *ScheduledAttempts) Send(ctx context.Context, turn webhook.ScheduledAttempt, now time.Time) error {
	body, err := json.Marshal(turn)
	if err != nil {
		return fmt.Errorf("sqs: queue an attempt: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err = q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.url, MessageBody: aws.String(string(body)),
		DelaySeconds: wholeSeconds(min(turn.At.Sub(now), longestDelay)),
		// On a standard queue, the group affects only fairness.
		MessageGroupId: &turn.Account,
	})
	if err != nil {
		return fmt.Errorf("sqs: queue an attempt: %w", err)
	}
	return nil
}

func ReadScheduledAttempt(body string) (webhook.ScheduledAttempt, error) {
	var turn webhook.ScheduledAttempt
	if err := json.Unmarshal([]byte(body), &turn); err != nil {
		return webhook.ScheduledAttempt{}, fmt.Errorf("sqs: read an attempt: %w", err)
	}
	if turn.Event == "" || turn.Number < 1 || turn.Number > webhook.MaxAttempts {
		return webhook.ScheduledAttempt{}, errors.New("sqs: an attempt lacks an event or a number")
	}
	return turn, nil
}
