package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/domain/job"
)

// estimatesAge is how long estimates are kept after the last worker published them. There may be no worker for days.
const estimatesAge = 14 * 24 * time.Hour

type Estimates struct {
	client *dynamodb.Client
	table  string
}

var _ job.EstimateStore = (*Estimates)(nil)

func NewEstimates(client *dynamodb.Client, table string) *Estimates { return &Estimates{client, table} }

func estimatesKey() item { return jobKey("engine", "estimates") }

// Estimates does not use a consistent read. The attribute is not "body", because version 0.1.0 reads that. It would
// reject every edit, because these estimates lack the field "slack".
func (e *Estimates) Estimates(ctx context.Context) (job.Estimates, error) {
	found, err := e.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &e.table, Key: estimatesKey()})
	if err != nil {
		return nil, storeError("read estimates", err)
	}
	r := reader{item: found.Item}
	body := r.text("estimates")
	if r.err != nil || body == "" {
		return nil, r.err
	}
	var estimates job.Estimates
	if err := json.Unmarshal([]byte(body), &estimates); err != nil {
		return nil, fmt.Errorf("dynamo: estimates: %w", err)
	}
	return estimates, nil
}

func (e *Estimates) PublishEstimates(ctx context.Context, estimates job.Estimates, now time.Time) error {
	update := &dynamodb.UpdateItemInput{
		TableName: &e.table, Key: estimatesKey(), UpdateExpression: aws.String("REMOVE #estimates SET #ttl = :ttl"),
		ExpressionAttributeNames:  named("estimates", "ttl"),
		ExpressionAttributeValues: item{":ttl": seconds(now.Add(estimatesAge))},
	}
	if len(estimates) > 0 {
		body, err := encoded(estimates)
		if err != nil {
			return fmt.Errorf("dynamo: publish estimates: %w", err)
		}
		update.UpdateExpression = aws.String("SET #estimates = :estimates, #ttl = :ttl")
		update.ExpressionAttributeValues[":estimates"] = body
	}
	_, err := e.client.UpdateItem(ctx, update)
	return storeError("publish estimates", err)
}
