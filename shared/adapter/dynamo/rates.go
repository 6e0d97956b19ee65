package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/ratelimit"
)

// Rates counts what accounts and keys use against the rates of a tier. It is a
// ratelimit.Limiter whose counts several processes share.
//
// A name is one item with one number, the time at which its burst is whole again (the
// generic cell rate algorithm). Each count moves that time forward; the write's condition
// refuses a count that would move it further than the burst allows. So the rate is exact
// under any concurrency, as far as the callers' clocks agree. A count is one write, or
// two for a name that is in use.
type Rates struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
	newID  func() string
}

// NewRates returns the rates that are counted in the table, which is that of usage. newID
// returns a unique text, which distinguishes a write that is repeated after a lost
// answer from another caller's.
func NewRates(client *dynamodb.Client, table string, now func() time.Time, newID func() string) *Rates {
	return &Rates{client, table, now, newID}
}

const (
	// ratePart is the part of the item of a rate.
	ratePart = "rate"
	// keptRates is how long the item of a rate is kept once its burst is whole again. It
	// then means the same as no item.
	keptRates = time.Hour
)

// rateItem is the item of a name. Times are in nanoseconds since 1970.
type rateItem struct {
	WholeAt int64  `dynamodbav:"whole_at"`
	Last    string `dynamodbav:"last_count"`
}

// count is one count of a name.
type count struct {
	*Rates
	key  item
	id   string
	rate ratelimit.Rate
	// now is the time of the count, and cost how far it moves the name's time. A name
	// whose time is after far was moved there by a wrong clock, and starts over.
	now, cost, far int64
}

// Take counts n if the rate allows them now, and returns the state of the name. A name
// whose rate changes starts over.
//
// Errors: fault.Unavailable.
func (r *Rates) Take(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error) {
	if rate.PerSecond <= 0 {
		return ratelimit.Unlimited(), nil
	}
	c := r.newCount(name, n, rate)
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	state, err := c.take(ctx)
	return state, storeError("count a rate", err)
}

// Charge counts n that are already used, whether or not the rate allows them: the excess
// is a debt, up to ratelimit.MaxDebt, that delays later calls of Take.
//
// Errors: fault.Unavailable.
func (r *Rates) Charge(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error) {
	if rate.PerSecond <= 0 {
		return ratelimit.Unlimited(), nil
	}
	c := r.newCount(name, n, rate)
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	state, err := c.charge(ctx)
	return state, storeError("count a rate", err)
}

func (r *Rates) newCount(name string, n int, rate ratelimit.Rate) *count {
	rate.Burst = max(rate.Burst, 1)
	now := r.now().UnixNano()
	return &count{
		Rates: r, id: r.newID(), rate: rate, now: now, cost: int64(rate.Cost(n)), far: now + 2*int64(rate.MaxAhead()),
		key: item{"id": text(fmt.Sprintf("rate/%s/%g/%d", name, rate.PerSecond, rate.Burst)), "part": text(ratePart)},
	}
}

func (c *count) take(ctx context.Context) (ratelimit.State, error) {
	until := c.now + int64(c.rate.BurstTime()) - c.cost
	if until < c.now {
		// More than the burst is never allowed.
		found, err := c.read(ctx)
		return c.state(false, found), err
	}
	done, found, err := c.start(ctx)
	if done || err != nil {
		return c.state(true, found), err
	}
	if found > until {
		return c.state(false, found), nil
	}
	done, found, err = c.moveOn(ctx, found, until)
	return c.state(done, found), err
}

func (c *count) charge(ctx context.Context) (ratelimit.State, error) {
	done, found, err := c.start(ctx)
	if done || err != nil {
		return c.state(true, found), err
	}
	longest := c.now + int64(c.rate.MaxAhead())
	if until := longest - c.cost; found <= until {
		if done, found, err = c.moveOn(ctx, found, until); done || err != nil {
			return c.state(true, found), err
		}
	}
	if found >= longest {
		return c.state(true, found), nil
	}
	// Adding all of it would exceed the maximum debt.
	_, found, err = c.write(ctx, longest, "SET whole_at = :whole", "whole_at < :whole AND last_count <> :count",
		item{":whole": number(longest)})
	return c.state(true, found), err
}

// start counts from now, if the name is not in use.
func (c *count) start(ctx context.Context) (done bool, wholeAt int64, err error) {
	whole := c.now + c.cost
	return c.write(ctx, whole, "SET whole_at = :whole",
		"attribute_not_exists(whole_at) OR whole_at <= :now OR whole_at > :far",
		item{":whole": number(whole), ":now": number(c.now), ":far": number(c.far)})
}

// moveOn adds the cost to the time of a name that is in use, unless others have moved that
// beyond until meanwhile. A name in use has a time after now, which only increases.
func (c *count) moveOn(ctx context.Context, found, until int64) (done bool, wholeAt int64, err error) {
	return c.write(ctx, found+c.cost, "SET whole_at = whole_at + :cost", "whole_at <= :until AND last_count <> :count",
		item{":cost": number(c.cost), ":until": number(until)})
}

// write moves the name's time if the condition is true. It reports whether it was, and
// when the name's burst is then whole.
func (c *count) write(ctx context.Context, whole int64, update, condition string, values item) (done bool,
	wholeAt int64, err error) {
	values[":count"] = text(c.id)
	values[":ttl"] = seconds(time.Unix(0, whole).Add(keptRates))
	written, err := c.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &c.table, Key: c.key,
		UpdateExpression:                    aws.String(update + ", last_count = :count, #ttl = :ttl"),
		ConditionExpression:                 aws.String(condition),
		ExpressionAttributeNames:            map[string]string{"#ttl": ttlAttribute},
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	old, failed := conditionFailed(err)
	if err != nil && !failed {
		return false, 0, err
	}
	if !failed {
		old = written.Attributes
	}
	var read rateItem
	if err := attributevalue.UnmarshalMap(old, &read); err != nil {
		return false, 0, err
	}
	// If the item has this count's id, the write was made before and its answer was
	// lost.
	return !failed || read.Last == c.id, read.WholeAt, nil
}

// read returns when the name's burst is whole.
func (c *count) read(ctx context.Context) (wholeAt int64, err error) {
	got, err := c.client.GetItem(ctx,
		&dynamodb.GetItemInput{TableName: &c.table, Key: c.key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return 0, err
	}
	var read rateItem
	err = attributevalue.UnmarshalMap(got.Item, &read)
	return read.WholeAt, err
}

// state returns the state of a name whose burst is whole at the time.
func (c *count) state(allowed bool, wholeAt int64) ratelimit.State {
	if wholeAt > c.far {
		wholeAt = c.now // it starts over
	}
	return c.rate.State(allowed, time.Duration(wholeAt-c.now))
}
