package dynamo

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/ratelimit"
)

// Windows is a ratelimit.Window whose counts several processes share. It is exact within
// any span, as far as the callers' clocks agree.
//
// A name is one item with the times that count. It is read, and written on the condition
// that nobody has written it meanwhile. So a count is a read and a write, a refusal only a
// read, and concurrent callers retry.
type Windows struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
	newID  func() string
}

// NewWindows returns the windows that are counted in the table, which is that of usage.
// newID returns a unique text, which distinguishes a write that is repeated after a lost
// answer from another caller's.
func NewWindows(client *dynamodb.Client, table string, now func() time.Time, newID func() string) *Windows {
	return &Windows{client, table, now, newID}
}

const (
	// windowPart is the part of the item of a window.
	windowPart = "window"
	// keptWindows is how long the item of a window is kept after a count.
	keptWindows = time.Hour
	// windowTries is how often a count is tried that conflicts with others.
	windowTries = 50
)

// windowItem is the item of a name. Times are in nanoseconds since 1970.
type windowItem struct {
	Times []int64 `dynamodbav:"times"`
	Last  string  `dynamodbav:"last_count"`
}

// Take counts n if the rate allows them now, and returns the state of the name.
//
// Errors: fault.Unavailable.
func (w *Windows) Take(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error) {
	if rate.PerSecond <= 0 {
		return ratelimit.Unlimited(), nil
	}
	key := item{"id": text(windowPart + "/" + name), "part": text(windowPart)}
	state, err := w.take(ctx, key, n, rate)
	return state, storeError("count in a window", err)
}

func (w *Windows) take(ctx context.Context, key item, n int, rate ratelimit.Rate) (ratelimit.State, error) {
	got, err := w.client.GetItem(ctx,
		&dynamodb.GetItemInput{TableName: &w.table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return ratelimit.State{}, err
	}
	found, id, now := got.Item, w.newID(), w.now()
	for range windowTries {
		var read windowItem
		if err := attributevalue.UnmarshalMap(found, &read); err != nil {
			return ratelimit.State{}, err
		}
		times, state := rate.Slide(timesOf(read.Times), now, n)
		if !state.Allowed {
			return state, nil
		}
		old, failed, err := w.write(ctx, key, read.Last, id, now, times)
		if err != nil {
			return ratelimit.State{}, err
		}
		if !failed {
			return state, nil
		}
		if found = old; isLast(old, id) {
			return state, nil // it was written, and the answer was lost
		}
	}
	return ratelimit.State{}, busy(nil)
}

// write sets the times if the last count is still the one that was read. Otherwise failed is
// true, and old is the item as it is.
func (w *Windows) write(ctx context.Context, key item, seen, id string, now time.Time, times []time.Time) (old item,
	failed bool, err error) {
	stored := make([]types.AttributeValue, 0, len(times))
	for _, at := range times {
		stored = append(stored, number(at.UnixNano()))
	}
	values := item{":times": &types.AttributeValueMemberL{Value: stored}, ":count": text(id),
		":ttl": seconds(now.Add(keptWindows))}
	condition := "attribute_not_exists(last_count)"
	if seen != "" {
		condition, values[":seen"] = "last_count = :seen", text(seen)
	}
	_, err = w.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: key,
		UpdateExpression:                    aws.String("SET times = :times, last_count = :count, #ttl = :ttl"),
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            map[string]string{"#ttl": ttlAttribute},
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if old, failed = conditionFailed(err); failed {
		return old, true, nil
	}
	return nil, false, err
}

// timesOf returns stored times, oldest first: the callers' clocks may differ.
func timesOf(stored []int64) []time.Time {
	slices.Sort(stored)
	times := make([]time.Time, 0, len(stored))
	for _, at := range stored {
		times = append(times, time.Unix(0, at))
	}
	return times
}

func isLast(i item, id string) bool {
	r := reader{item: i}
	return r.text("last_count") == id
}
