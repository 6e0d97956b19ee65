package dynamo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
)

// webhookPart is the sort key of the item with an event's delivery attempts. The item exists once
// there has been an attempt.
const webhookPart = "webhook"

// attemptsAttribute contains each attempt as JSON.
const attemptsAttribute = "attempts"

type Webhooks struct {
	client *dynamodb.Client
	table  string
}

var _ webhook.Store = (*Webhooks)(nil)

func NewWebhooks(client *dynamodb.Client, table string) *Webhooks { return &Webhooks{client, table} }

// Times are in milliseconds.
type attemptItem struct {
	At       int64  `json:"at"`
	Duration int64  `json:"duration"`
	Status   int    `json:"status,omitempty"`
	Error    string `json:"error,omitempty"`
	Next     int64  `json:"next,omitempty"`
}

func (w *Webhooks) Attempts(ctx context.Context, event string) ([]webhook.Attempt, error) {
	found, err := readItem(ctx, w.client, w.table, jobKey(event, webhookPart))
	if err != nil {
		return nil, storeError("read the attempts of a webhook", err)
	}
	return readAttempts(found)
}

func readAttempts(from item) ([]webhook.Attempt, error) {
	list, there := from[attemptsAttribute].(*types.AttributeValueMemberL)
	if !there {
		return nil, nil
	}
	attempts := make([]webhook.Attempt, len(list.Value))
	for i, value := range list.Value {
		kept, _ := value.(*types.AttributeValueMemberS)
		if kept == nil {
			return nil, fmt.Errorf("dynamo: attempt %d of a webhook has the wrong type", i+1)
		}
		var read attemptItem
		if err := json.Unmarshal([]byte(kept.Value), &read); err != nil {
			return nil, fmt.Errorf("dynamo: attempt %d of a webhook: %w", i+1, err)
		}
		attempts[i] = webhook.Attempt{
			Number: i + 1, At: optionalTime(read.At), Duration: milliseconds(read.Duration),
			Status: read.Status, Error: read.Error, Next: optionalTime(read.Next),
		}
	}
	return attempts, nil
}

func encodeAttempt(a webhook.Attempt) (types.AttributeValue, error) {
	kept, err := encoded(attemptItem{
		At: a.At.UnixMilli(), Duration: a.Duration.Milliseconds(), Status: a.Status, Error: a.Error,
		Next: optionalMillis(a.Next),
	})
	if err != nil {
		return nil, fmt.Errorf("dynamo: record a webhook attempt: %w", err)
	}
	return kept, nil
}

func (w *Webhooks) Record(ctx context.Context, e webhook.Event, a webhook.Attempt) error {
	kept, err := encodeAttempt(a)
	if err != nil {
		return err
	}
	values := item{
		":none": &types.AttributeValueMemberL{}, ":attempt": &types.AttributeValueMemberL{Value: []types.AttributeValue{kept}},
		":ttl": seconds(e.FirstBy.Add(recordAge)),
	}
	condition := "attribute_not_exists(#attempts)"
	if a.Number > 1 {
		condition = "size(#attempts) = :made"
		values[":made"] = number(int64(a.Number - 1))
	}
	old, refused, err := tryUpdate(ctx, w.client, &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: jobKey(e.ID, webhookPart), ConditionExpression: &condition,
		UpdateExpression: aws.String(
			"SET #attempts = list_append(if_not_exists(#attempts, :none), :attempt), #ttl = :ttl"),
		ExpressionAttributeNames: named(attemptsAttribute, ttlAttribute), ExpressionAttributeValues: values,
	})
	if !refused {
		return storeError("record a webhook attempt", err)
	}
	made, err := readAttempts(old)
	if err != nil {
		return err
	}
	if len(made) >= a.Number && made[a.Number-1].At.UnixMilli() == a.At.UnixMilli() {
		return nil // already recorded by a call whose response was lost
	}
	return webhook.ErrNotNext
}

// EndedWithWebhook returns the first delivery attempt for an ended job that has a webhook, from a
// new image in the table's stream.
func EndedWithWebhook(image map[string]events.DynamoDBAttributeValue) (webhook.ScheduledAttempt, bool) {
	text := textOf(image)
	if text("part") != RecordPart || text("webhook") == "" || text("id") == "" || !job.Status(text("status")).Terminal() {
		return webhook.ScheduledAttempt{}, false
	}
	ended, err := readTime(text("completed_at"))
	return webhook.First(text("id"), cmp.Or(text(ownerAttribute), text("account")), ended), err == nil
}

func textOf(image map[string]events.DynamoDBAttributeValue) func(name string) string {
	return func(name string) string {
		value, there := image[name]
		if !there || value.DataType() != events.DataTypeString {
			return ""
		}
		return value.String()
	}
}
