package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/idempotency"
)

// IdempotencyKeys uses the usage table, because every function that serves callers may already write to it.
type IdempotencyKeys struct {
	client *dynamodb.Client
	table  string
}

var _ idempotency.Store = (*IdempotencyKeys)(nil)

func NewIdempotencyKeys(client *dynamodb.Client, table string) *IdempotencyKeys {
	return &IdempotencyKeys{client, table}
}

const claimPart = "idempotency"

// ClaimedAt is in milliseconds since 1970.
type claimItem struct {
	Fingerprint string `dynamodbav:"fingerprint"`
	Resource    string `dynamodbav:"resource"`
	Settled     bool   `dynamodbav:"settled"`
	Answer      []byte `dynamodbav:"answer"`
	ClaimedAt   int64  `dynamodbav:"claimed_at"`
}

// claimKey includes the length of the account's name, so that it is unique for each account and key.
func claimKey(c idempotency.Claim) item {
	return item{
		"id":   text(fmt.Sprintf("idempotency/%d/%s/%s", len(c.Account), c.Account, c.Key)),
		"part": text(claimPart),
	}
}

func (k *IdempotencyKeys) Claim(ctx context.Context, c idempotency.Claim, instead string,
	now time.Time) (idempotency.Record, error) {
	old, err := k.update(ctx, c, dynamodb.UpdateItemInput{
		UpdateExpression: aws.String("SET #fingerprint = :fingerprint, #resource = :resource, #settled = :no, #claimed_at " +
			"= :now, #ttl = :ttl REMOVE #answer"),
		ConditionExpression: aws.String("attribute_not_exists(#resource) OR #claimed_at <= :old" +
			" OR #resource = :instead AND #settled = :no"),
		ExpressionAttributeNames: named("fingerprint", "resource", "settled", "answer", "claimed_at", "ttl"),
		ExpressionAttributeValues: item{
			":fingerprint": text(c.Fingerprint), ":resource": text(c.Resource), ":no": boolean(false),
			":now": moment(now), ":old": moment(now.Add(-idempotency.Age)), ":ttl": seconds(now.Add(idempotency.Age)),
			":instead": text(instead),
		},
	})
	if err != nil {
		return idempotency.Record{}, storeError("claim an idempotency key", err)
	}
	if old == nil {
		return idempotency.Record{
			Fingerprint: c.Fingerprint, Resource: c.Resource, ClaimedAt: time.UnixMilli(now.UnixMilli()).UTC(),
		}, nil
	}
	var found claimItem
	if err := attributevalue.UnmarshalMap(old, &found); err != nil {
		return idempotency.Record{}, fmt.Errorf("dynamo: read an idempotency key: %w", err)
	}
	return idempotency.Record{
		Fingerprint: found.Fingerprint, Resource: found.Resource, Settled: found.Settled, Response: found.Answer,
		ClaimedAt: time.UnixMilli(found.ClaimedAt).UTC(),
	}, nil
}

func (k *IdempotencyKeys) Settle(ctx context.Context, c idempotency.Claim, answer []byte) error {
	_, err := k.update(ctx, c, dynamodb.UpdateItemInput{
		UpdateExpression:         aws.String("SET #settled = :yes, #answer = :answer"),
		ConditionExpression:      aws.String("#resource = :resource AND #settled = :no"),
		ExpressionAttributeNames: named("resource", "settled", "answer"),
		ExpressionAttributeValues: item{
			":resource": text(c.Resource), ":yes": boolean(true), ":no": boolean(false),
			// A nil response is stored as empty bytes, because DynamoDB does not accept null for bytes.
			":answer": &types.AttributeValueMemberB{Value: append([]byte{}, answer...)},
		},
	})
	return storeError("settle an idempotency key", err)
}

// Withdraw removes the attributes of the claim but leaves the item to its TTL, because functions have no permission
// to delete items of this table.
func (k *IdempotencyKeys) Withdraw(ctx context.Context, c idempotency.Claim) error {
	_, err := k.update(ctx, c, dynamodb.UpdateItemInput{
		UpdateExpression:          aws.String("REMOVE #resource"),
		ConditionExpression:       aws.String("#resource = :resource AND #settled = :no"),
		ExpressionAttributeNames:  named("resource", "settled"),
		ExpressionAttributeValues: item{":resource": text(c.Resource), ":no": boolean(false)},
	})
	return storeError("withdraw an idempotency key", err)
}

func (k *IdempotencyKeys) Resource(ctx context.Context, account, key string, now time.Time) (string, error) {
	got, err := readItem(ctx, k.client, k.table, claimKey(idempotency.Claim{Account: account, Key: key}))
	if err != nil {
		return "", storeError("look up an idempotency key", err)
	}
	var found claimItem
	if err := attributevalue.UnmarshalMap(got, &found); err != nil {
		return "", fmt.Errorf("dynamo: read an idempotency key: %w", err)
	}
	if found.ClaimedAt <= now.Add(-idempotency.Age).UnixMilli() {
		return "", nil
	}
	return found.Resource, nil
}

// If the condition fails, update returns the current item.
func (k *IdempotencyKeys) update(ctx context.Context, c idempotency.Claim, write dynamodb.UpdateItemInput) (item,
	error) {
	write.TableName, write.Key = &k.table, claimKey(c)
	old, refused, err := tryUpdate(ctx, k.client, &write)
	if !refused {
		return nil, err
	}
	if old == nil {
		old = item{}
	}
	return old, nil
}
