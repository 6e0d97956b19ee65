package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/domain/batch"
)

var _ batch.Claims = (*Batches)(nil)

// Standings returns the batches of all accounts that have not ended, oldest first: a
// consistent read of the list, and one of each hundred records.
//
// Errors: fault.Unavailable.
func (s *Batches) Standings(ctx context.Context) ([]batch.Standing, error) {
	items, err := s.listItems(ctx, openBatches, 0)
	if err != nil {
		return nil, storeError("list open batches", err)
	}
	var all []batch.Standing
	for _, i := range items {
		b, err := readBatch(i)
		if err != nil {
			return nil, err
		}
		r := reader{item: i}
		one := batch.Standing{
			Batch: b, HeldUntil: r.moment("held_until"), Due: r.moment("due_at"), Fruitless: int(r.number("fruitless")),
		}
		if r.err != nil {
			return nil, r.err
		}
		all = append(all, one)
	}
	return all, nil
}

// Claim claims a batch by one write.
//
// Errors: fault.Unavailable.
func (s *Batches) Claim(ctx context.Context, id, holder string, now, until time.Time) (claimed bool, err error) {
	_, err = s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: batchKey(id), UpdateExpression: aws.String("SET held_by = :holder, held_until = :until"),
		ConditionExpression: aws.String(
			"attribute_exists(id) AND (attribute_not_exists(held_until) OR held_until <= :now OR held_by = :holder)"),
		ExpressionAttributeValues: item{":holder": text(holder), ":until": moment(until), ":now": moment(now)},
	})
	if _, failed := conditionFailed(err); failed {
		return false, nil
	}
	return err == nil, storeError("claim a batch", err)
}

// Release ends a claim by one write.
//
// Errors: fault.Unavailable.
func (s *Batches) Release(ctx context.Context, id, holder string, due time.Time, fruitless int) error {
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: batchKey(id),
		UpdateExpression:    aws.String("SET due_at = :due, fruitless = :fruitless REMOVE held_until"),
		ConditionExpression: aws.String("held_by = :holder"),
		ExpressionAttributeValues: item{
			":holder": text(holder), ":due": moment(due), ":fruitless": number(int64(fruitless)),
		},
	})
	if _, failed := conditionFailed(err); failed {
		return nil
	}
	return storeError("release a batch", err)
}
