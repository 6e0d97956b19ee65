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

// longestDelay is for how long SQS holds a message back at most. A turn that is due
// later comes earlier, and is sent again.
const longestDelay = 15 * time.Minute

// ScheduledAttempts is the queue of webhooks' turns.
type ScheduledAttempts struct {
	client *sqs.Client
	url    string
}

// NewScheduledAttempts makes a queue from its URL.
func NewScheduledAttempts(config aws.Config, url string) *ScheduledAttempts {
	return &ScheduledAttempts{newClient(config, 0), url}
}

// Send lets a turn come when it is due, or after longestDelay. A call that is
// repeated after a lost answer may let it come twice.
//
// Errors: those of the call.
func (q *ScheduledAttempts) Send(ctx context.Context, turn webhook.ScheduledAttempt, now time.Time) error {
	body, err := json.Marshal(turn)
	if err != nil {
		return fmt.Errorf("sqs: send a turn: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err = q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.url, MessageBody: aws.String(string(body)),
		DelaySeconds: wholeSeconds(min(turn.At.Sub(now), longestDelay)),
		// On a standard queue the group is for fairness alone.
		MessageGroupId: &turn.Account,
	})
	if err != nil {
		return fmt.Errorf("sqs: send a turn: %w", err)
	}
	return nil
}

// ReadScheduledAttempt reads the body of a message that Send sent.
func ReadScheduledAttempt(body string) (webhook.ScheduledAttempt, error) {
	var turn webhook.ScheduledAttempt
	if err := json.Unmarshal([]byte(body), &turn); err != nil {
		return webhook.ScheduledAttempt{}, fmt.Errorf("sqs: a turn: %w", err)
	}
	if turn.Job == "" || turn.Number < 1 || turn.Number > webhook.MaxAttempts {
		return webhook.ScheduledAttempt{}, errors.New("sqs: a turn names no job, or no attempt")
	}
	return turn, nil
}
