package dynamo

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"sync"
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
// two where this process does not know that the name is in use; to look is a read.
//
// One item takes a thousand writes a second. The name of a rate that allows too many counts
// for that is several items, which share the rate out. A count tries one, and the others
// before it is refused, so the rate is never exceeded and can be used up.
type Rates struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
	newID  func() string

	mu sync.Mutex
	// seen are the times that items had when this process saw them last. As they only
	// increase, one that refuses a count goes on refusing until it has passed.
	seen map[string]int64
}

// NewRates returns the rates that are counted in the table, which is that of usage. newID
// returns a unique text, which distinguishes a write that is repeated after a lost
// answer from another caller's.
func NewRates(client *dynamodb.Client, table string, now func() time.Time, newID func() string) *Rates {
	return &Rates{client: client, table: table, now: now, newID: newID, seen: map[string]int64{}}
}

const (
	// ratePart is the part of the item of a rate.
	ratePart = "rate"
	// keptRates is how long the item of a rate is kept once its burst is whole again. It
	// then means the same as no item.
	keptRates = time.Hour
	// rateOfItem is for how many counts a second a name has an item, and mostItems how many
	// it has at most.
	rateOfItem, mostItems = 400, 16
	// mostSeen bounds how many items a process remembers.
	mostSeen = 20_000
)

// rateItem is the item of a name. Times are in nanoseconds since 1970.
type rateItem struct {
	WholeAt int64  `dynamodbav:"whole_at"`
	Last    string `dynamodbav:"last_count"`
}

// count is one count of a name, at one of its items.
type count struct {
	*Rates
	id string
	// whole is the rate of the name, and rate that of one of its items.
	whole, rate ratelimit.Rate
	name        string
	items, item uint32
	n           int
	// now is the time of the count, and cost how far it moves an item's time. An item
	// whose time is after far was moved there by a wrong clock, and starts over.
	now, cost, far int64
}

// itemsOf returns how many items the name of a rate has.
func itemsOf(rate ratelimit.Rate) uint32 {
	counts := rate.PerSecond / float64(max(rate.Each, 1))
	return uint32(max(min(math.Ceil(counts/rateOfItem), mostItems, float64(rate.Burst)), 1))
}

// Take counts n if the rate allows them now, and returns the state of the name. A name
// whose rate changes starts over. Where a name has several items, n is at most the burst of
// one, and the state is what the item that was counted at says of all.
//
// Errors: fault.Unavailable.
func (r *Rates) Take(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error) {
	if rate.PerSecond <= 0 {
		return ratelimit.Unlimited(), nil
	}
	c := r.newCount(name, n, rate)
	var best ratelimit.State
	for i := range c.items {
		state, err := c.take(ctx)
		if err != nil {
			return state, storeError("count a rate", err)
		}
		if state.Allowed && (n > 0 || state.Remaining > 0) {
			return state, nil
		}
		if i == 0 || state.RetryAfter < best.RetryAfter {
			best = state
		}
		c.goTo((c.item + 1) % c.items)
	}
	return best, nil
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
	state, err := c.charge(ctx)
	return state, storeError("count a rate", err)
}

func (r *Rates) newCount(name string, n int, rate ratelimit.Rate) *count {
	rate.Burst = max(rate.Burst, 1)
	c := &count{Rates: r, id: r.newID(), whole: rate, name: name, items: itemsOf(rate), n: n, now: r.now().UnixNano()}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(c.id)) // a hash never fails
	c.goTo(hash.Sum32() % c.items)
	return c
}

// goTo makes an item the one that is counted at.
func (c *count) goTo(item uint32) {
	c.item = item
	c.rate = ratelimit.Rate{PerSecond: c.whole.PerSecond / float64(c.items), Burst: c.whole.Burst / int(c.items)}
	if item < uint32(c.whole.Burst)%c.items {
		c.rate.Burst++
	}
	c.cost, c.far = int64(c.rate.Cost(c.n)), c.now+2*int64(c.rate.MaxAhead())
}

// partition returns the partition key of the item that is counted at.
func (c *count) partition() string {
	key := fmt.Sprintf("rate/%s/%g/%d", c.name, c.whole.PerSecond, c.whole.Burst)
	if c.items > 1 {
		key += fmt.Sprintf("/%d", c.item)
	}
	return key
}

func (c *count) key() item { return item{"id": text(c.partition()), "part": text(ratePart)} }

// lastSeen returns the time that this process saw last at the item, 0 for none that counts.
func (c *count) lastSeen() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seen := c.seen[c.partition()]; seen <= c.far {
		return seen
	}
	return 0
}

func (c *count) see(wholeAt int64) {
	if wholeAt > c.far {
		return // somebody will have it start over
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= mostSeen {
		clear(c.seen)
	}
	c.seen[c.partition()] = wholeAt
}

func (c *count) take(ctx context.Context) (ratelimit.State, error) {
	until := c.now + int64(c.rate.BurstTime()) - c.cost
	if until < c.now || c.n <= 0 {
		// More than the burst is never allowed, and nothing moves no time.
		found, err := c.read(ctx)
		return c.state(until >= c.now && (found <= until || found > c.far), found), err
	}
	seen := c.lastSeen()
	if seen > until {
		return c.state(false, seen), nil
	}
	if seen > c.now {
		done, found, err := c.moveOn(ctx, seen, until)
		if done || err != nil || found > until && found <= c.far {
			return c.state(done, found), err
		}
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
	longest := c.now + int64(c.rate.MaxAhead())
	until := longest - c.cost
	if seen := c.lastSeen(); seen > c.now && seen <= until {
		if done, found, err := c.moveOn(ctx, seen, until); done || err != nil {
			return c.state(true, found), err
		}
	}
	done, found, err := c.start(ctx)
	if done || err != nil {
		return c.state(true, found), err
	}
	if found <= until {
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
// beyond until meanwhile, or it has passed. A name in use has a time after now, which only
// increases.
func (c *count) moveOn(ctx context.Context, found, until int64) (done bool, wholeAt int64, err error) {
	return c.write(ctx, found+c.cost, "SET whole_at = whole_at + :cost",
		"whole_at BETWEEN :now AND :until AND last_count <> :count",
		item{":cost": number(c.cost), ":now": number(c.now), ":until": number(until)})
}

// write moves the name's time if the condition is true. It reports whether it was, and
// when the name's burst is then whole.
func (c *count) write(ctx context.Context, whole int64, update, condition string, values item) (done bool,
	wholeAt int64, err error) {
	values[":count"] = text(c.id)
	values[":ttl"] = seconds(time.Unix(0, whole).Add(keptRates))
	written, err := c.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &c.table, Key: c.key(),
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
	c.see(read.WholeAt)
	// If the item has this count's id, the write was made before and its answer was
	// lost.
	return !failed || read.Last == c.id, read.WholeAt, nil
}

// read returns when the name's burst is whole.
func (c *count) read(ctx context.Context) (wholeAt int64, err error) {
	got, err := c.client.GetItem(ctx,
		&dynamodb.GetItemInput{TableName: &c.table, Key: c.key(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return 0, err
	}
	var read rateItem
	err = attributevalue.UnmarshalMap(got.Item, &read)
	return read.WholeAt, err
}

// state returns the state of a name by an item whose burst is whole at the time.
func (c *count) state(allowed bool, wholeAt int64) ratelimit.State {
	if wholeAt > c.far {
		wholeAt = c.now // it starts over
	}
	ahead := time.Duration(wholeAt - c.now)
	state := c.whole.State(allowed, ahead)
	if !allowed {
		state.RetryAfter = c.rate.State(false, ahead).RetryAfter
	}
	return state
}
