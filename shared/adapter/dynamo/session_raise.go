package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"
)

// Keys of one account may have different limits, and limits change. So a part also has what
// the open slots of the account may have become (most_slots), and only those take room there
// whose limit is no lower. The account's number of that name bounds its open slots. It is
// lowered by whoever moves room under a lower limit that they fit in. Before it is raised, that
// of each part is (raise), during which no room is moved.

// raise raises what the open slots of an account may become to most, if they have reached it;
// or it ends a raise that another has begun. It reports whether there was something to do.
func (s *Sessions) raise(ctx context.Context, account string, head slotHead, most int64) (bool, error) {
	switch {
	case head.raising > 0:
	case head.parts > 0 && head.open >= head.most && head.most < most:
		after, err := s.writeOwn(ctx, account, "SET raising_to = :to ADD raise_count :one",
			"most_slots = :seen AND attribute_not_exists(raising_to)",
			item{":to": number(most), ":one": number(1), ":seen": number(head.most)})
		if err != nil || after == nil {
			return true, err
		}
		head = readHead(after)
	default:
		return false, nil
	}
	err := s.eachPart(ctx, account, head.parts, "SET most_slots = :to",
		aws.String("attribute_not_exists(most_slots) OR most_slots < :to"), item{":to": number(head.raising)})
	if err != nil {
		return true, err
	}
	_, err = s.writeOwn(ctx, account, "SET most_slots = :to REMOVE raising_to", "raising_to = :to AND raise_count = :no",
		item{":to": number(head.raising), ":no": number(head.raises)})
	return true, err
}

// writeOwn writes the account's own item, and returns it, or nil if the condition is false.
func (s *Sessions) writeOwn(ctx context.Context, account, update, condition string, values item) (item, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	written, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: accountKey(account), UpdateExpression: &update, ConditionExpression: &condition,
		ExpressionAttributeValues: values, ReturnValues: types.ReturnValueAllNew,
	})
	if _, failed := conditionFailed(err); failed {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return written.Attributes, nil
}

// eachPart makes the same write to all parts for which the condition is true.
func (s *Sessions) eachPart(
	ctx context.Context, account string, parts int, update string, condition *string, values item,
) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(writesAtOnce)
	for at := 1; at <= parts; at++ {
		all.Go(func() error {
			_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &s.table, Key: slotsKey(account, at), UpdateExpression: &update, ConditionExpression: condition,
				ExpressionAttributeValues: values,
			})
			if _, failed := conditionFailed(err); failed {
				return nil
			}
			return err
		})
	}
	return all.Wait()
}
