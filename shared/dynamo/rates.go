package dynamo

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/limit"
)

// Rates counts what accounts and keys use against the rates of a tier, for
// processes that come and go: a limit.Limiter whose counts are shared.
//
// A name is one item with one number, the time at which its burst is whole again
// (the generic cell rate algorithm): what is counted moves it on, and what would
// move it further than the burst reaches is refused by the write's condition. So
// the rate is exact under any concurrency, as exact as the clocks of the callers
// agree. A count is one write, or two for a name that is in use.
type Rates struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
	newID  func() string
}

// NewRates gives the rates that are counted in the table, which is that of usage.
// newID gives text that nobody draws twice; it tells a write that is repeated
// after a lost answer from another's.
func NewRates(client *dynamodb.Client, table string, now func() time.Time, newID func() string) *Rates {
	return &Rates{client, table, now, newID}
}

const (
	// ratePart is the part of the item of a rate.
	ratePart = "rate"
	// keptRates is for how long the item of a rate is kept once its burst is
	// whole again, when it says the same as none.
	keptRates = time.Hour
)

// rateItem is the item of a name. Times are in nanoseconds since 1970.
type rateItem struct {
	WholeAt int64  `dynamodbav:"whole_at"`
	Last    string `dynamodbav:"last_count"`
}

// count is a count of a name that is being made.
type count struct {
	*Rates
	key  item
	id   string
	rate limit.Rate
	// now is the time of the count, cost what it moves the name on by, and
	// burst how far ahead of now the name may be, in nanoseconds.
	now, cost, burst int64
}

// Take counts n where they are allowed at once, and tells where the name then
// stands. A name whose rate changes starts over.
//
// Errors: fault.Unavailable.
func (r *Rates) Take(ctx context.Context, name string, n int, rate limit.Rate) (limit.State, error) {
	if rate.PerSecond <= 0 {
		return unlimited(), nil
	}
	c := r.newCount(name, n, rate)
	return c.run(ctx, c.now+c.burst-c.cost)
}

// Charge counts n that are used already, allowed or not: what is over the rate is
// a debt that later takes wait for.
//
// Errors: fault.Unavailable.
func (r *Rates) Charge(ctx context.Context, name string, n int, rate limit.Rate) (limit.State, error) {
	if rate.PerSecond <= 0 {
		return unlimited(), nil
	}
	return r.newCount(name, n, rate).run(ctx, math.MaxInt64)
}

func unlimited() limit.State { return limit.State{Allowed: true, Remaining: math.MaxInt32} }

func (r *Rates) newCount(name string, n int, rate limit.Rate) *count {
	rate.Burst = max(rate.Burst, 1)
	each := float64(time.Second) / rate.PerSecond
	return &count{
		Rates: r, id: r.newID(), rate: rate, now: r.now().UnixNano(),
		// Whole nanoseconds, rounded down, so that a burst of single counts is no
		// longer than the burst.
		cost: int64(float64(n) * each), burst: int64(float64(rate.Burst) * each),
		key: item{"id": text(fmt.Sprintf("rate/%s/%g/%d", name, rate.PerSecond, rate.Burst)), "part": text(ratePart)},
	}
}

// run counts, unless the name is already further ahead than until.
func (c *count) run(ctx context.Context, until int64) (limit.State, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	state, err := c.try(ctx, until)
	return state, storeError("count a rate", err)
}

func (c *count) try(ctx context.Context, until int64) (limit.State, error) {
	if until < c.now {
		// More than the burst is never allowed.
		found, err := c.read(ctx)
		return c.state(false, found), err
	}
	whole := c.now + c.cost
	done, found, err := c.write(ctx, whole, "SET whole_at = :whole", "attribute_not_exists(whole_at) OR whole_at <= :now",
		item{":whole": number(whole), ":now": number(c.now)})
	if done || err != nil {
		return c.state(true, found), err
	}
	if found > until {
		return c.state(false, found), nil
	}
	// The name is in use, and will be until after now: it only moves on.
	done, found, err = c.write(ctx, found+c.cost, "SET whole_at = whole_at + :cost", "whole_at <= :until AND last_count <> :count",
		item{":cost": number(c.cost), ":until": number(until)})
	return c.state(done, found), err
}

// write moves the name on where the condition holds. It gives whether that was
// done, and when the name's burst is then whole.
func (c *count) write(ctx context.Context, whole int64, update, condition string, values item) (done bool, wholeAt int64, err error) {
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
	// What is refused for having been done has been done by this count, whose
	// answer was lost.
	return !failed || read.Last == c.id, read.WholeAt, nil
}

// read gives when the name's burst is whole.
func (c *count) read(ctx context.Context) (wholeAt int64, err error) {
	got, err := c.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &c.table, Key: c.key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return 0, err
	}
	var read rateItem
	err = attributevalue.UnmarshalMap(got.Item, &read)
	return read.WholeAt, err
}

// state tells where a name stands whose burst is whole at the time.
func (c *count) state(allowed bool, wholeAt int64) limit.State {
	ahead := max(wholeAt-c.now, 0)
	left := float64(c.rate.Burst) - float64(ahead)*c.rate.PerSecond/float64(time.Second)
	s := limit.State{Allowed: allowed, Remaining: int(max(left, 0)), Reset: time.Duration(ahead)}
	if left < 1 {
		s.RetryAfter = time.Duration((1 - left) / c.rate.PerSecond * float64(time.Second))
	}
	return s
}
