package dynamo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/ratelimit"
)

// Rates is a ratelimit.Limiter with counts that several processes share.
//
// Each name is one item with one number: the time at which its burst will be completely available again (the generic
// cell rate algorithm). Counting a call moves that time forward. The write's condition rejects a count that would
// move it beyond the burst. So the rate is exact under concurrency, to the extent that the callers' clocks agree. A
// count takes one write, or two if this process does not know that the name is in use. One item sustains about a
// thousand writes per second.
type Rates struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
	newID  func() string

	mu sync.Mutex
	// seen maps items to the last times that this process saw. An item's time only increases, so
	// until that time has passed, the process knows that the name is in use.
	seen map[string]int64
}

// newID returns a unique string that distinguishes a retry from another caller's write.
func NewRates(client *dynamodb.Client, table string, now func() time.Time, newID func() string) *Rates {
	return &Rates{client: client, table: table, now: now, newID: newID, seen: map[string]int64{}}
}

const (
	ratePart = "rate"
	// keptRates is how long an item is kept after its burst is available again. From then on, the
	// item is equivalent to a missing item.
	keptRates = time.Hour
	// mostSeen is the maximum number of items that a process remembers.
	mostSeen = 20_000
)

// Times are in nanoseconds since 1970.
type rateItem struct {
	WholeAt int64  `dynamodbav:"whole_at"`
	Last    string `dynamodbav:"last_count"`
}

type count struct {
	*Rates
	id        string
	rate      ratelimit.Rate
	partition string
	n         int
	// cost is the time that a count adds to the item's time. If the item's time is later than far, a wrong clock must
	// have written it, so the item starts over.
	now, cost, far int64
}

// A name's different rates are counted separately.
func (r *Rates) Take(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error) {
	if rate.PerSecond <= 0 {
		return ratelimit.Unlimited(), nil
	}
	c := r.newCount(name, n, rate)
	state, err := c.take(ctx)
	return state, storeError("count a rate", err)
}

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
	now := r.now().UnixNano()
	return &count{
		Rates: r, id: r.newID(), rate: rate, n: n, now: now, cost: int64(rate.Cost(n)), far: now + 2*int64(rate.MaxAhead()),
		partition: fmt.Sprintf("rate/%s/%g/%d", name, rate.PerSecond, rate.Burst),
	}
}

func (c *count) key() item { return item{"id": text(c.partition), "part": text(ratePart)} }

func (c *count) lastSeen() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seen := c.seen[c.partition]; seen <= c.far {
		return seen
	}
	return 0
}

func (c *count) see(wholeAt int64) {
	if wholeAt > c.far {
		return // the next count starts the item over
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= mostSeen {
		clear(c.seen)
	}
	c.seen[c.partition] = wholeAt
}

func (c *count) take(ctx context.Context) (ratelimit.State, error) {
	until := c.now + int64(c.rate.BurstTime()) - c.cost
	if until < c.now || c.n <= 0 {
		// A count beyond the burst is never allowed, and a count of 0 changes nothing, so only read the item.
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
	// Set the maximum debt, because adding the full amount would exceed it.
	_, found, err = c.write(ctx, longest, "SET whole_at = :whole", "whole_at < :whole AND last_count <> :count",
		item{":whole": number(longest)})
	return c.state(true, found), err
}

// start sets the item's time to now plus the cost if the name is not in use.
func (c *count) start(ctx context.Context) (done bool, wholeAt int64, err error) {
	whole := c.now + c.cost
	return c.write(ctx, whole, "SET whole_at = :whole",
		"attribute_not_exists(whole_at) OR whole_at <= :now OR whole_at > :far",
		item{":whole": number(whole), ":now": number(c.now), ":far": number(c.far)})
}

// moveOn adds the cost to the time of a name that is in use. Its condition fails if the time has passed, or if others
// have moved it beyond the given limit.
func (c *count) moveOn(ctx context.Context, found, until int64) (done bool, wholeAt int64, err error) {
	return c.write(ctx, found+c.cost, "SET whole_at = whole_at + :cost",
		"whole_at BETWEEN :now AND :until AND last_count <> :count",
		item{":cost": number(c.cost), ":now": number(c.now), ":until": number(until)})
}

// write reports whether the condition was true, and returns the resulting time.
func (c *count) write(ctx context.Context, whole int64, update, condition string, values item) (done bool,
	wholeAt int64, err error) {
	values[":count"] = text(c.id)
	values[":ttl"] = seconds(time.Unix(0, whole).Add(keptRates))
	found, refused, err := tryUpdate(ctx, c.client, &dynamodb.UpdateItemInput{
		TableName: &c.table, Key: c.key(),
		UpdateExpression:         aws.String(update + ", last_count = :count, #ttl = :ttl"),
		ConditionExpression:      aws.String(condition),
		ExpressionAttributeNames: map[string]string{"#ttl": ttlAttribute}, ExpressionAttributeValues: values,
		ReturnValues: types.ReturnValueUpdatedNew,
	})
	if err != nil {
		return false, 0, err
	}
	var read rateItem
	if err := attributevalue.UnmarshalMap(found, &read); err != nil {
		return false, 0, err
	}
	c.see(read.WholeAt)
	// If the item has this count's id, an earlier write succeeded but its response was lost.
	return !refused || read.Last == c.id, read.WholeAt, nil
}

func (c *count) read(ctx context.Context) (wholeAt int64, err error) {
	got, err := readItem(ctx, c.client, c.table, c.key())
	if err != nil {
		return 0, err
	}
	var read rateItem
	err = attributevalue.UnmarshalMap(got, &read)
	return read.WholeAt, err
}

// state returns the state of a rate whose burst is available again at wholeAt.
func (c *count) state(allowed bool, wholeAt int64) ratelimit.State {
	if wholeAt > c.far {
		wholeAt = c.now // the item starts over
	}
	return c.rate.State(allowed, time.Duration(wholeAt-c.now))
}
