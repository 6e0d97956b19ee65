package dynamo

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// spreadDelay is how long after the decision an account is spread over partitions. A
	// deploy has replaced all functions and containers of an earlier version by then, which do
	// not know the other partitions.
	spreadDelay = time.Hour
	// spreadLook is how long a process relies on an account's not being spread.
	spreadLook = 10 * time.Minute
	// mostSpreads bounds how many accounts a process remembers.
	mostSpreads = 20_000
)

// spreads says which accounts are spread over partitions of a table. Each has an item that
// says from when on, which stays.
type spreads struct {
	client *dynamodb.Client
	table  string
	now    func() time.Time
	// key returns the key of an account's item, and delay is spreadDelay.
	key   func(account string) item
	delay time.Duration

	mu    sync.Mutex
	known map[string]spreadState
}

// spreadState is what is known of an account.
type spreadState struct {
	// from is when it is spread, zero for never; that was read at readAt.
	from, readAt time.Time
}

func newSpreads(client *dynamodb.Client, table string, now func() time.Time, key func(account string) item) *spreads {
	return &spreads{
		client: client, table: table, now: now, key: key, delay: spreadDelay, known: map[string]spreadState{},
	}
}

// reached reports whether the time from which on an account is spread has come.
func (x *spreads) reached(from time.Time) bool { return !from.IsZero() && !x.now().Before(from) }

// isSpread reports whether an account is spread now, and decides that it will be if it never
// was. Where that cannot be told it is not: what is in its first partition is always found.
func (x *spreads) isSpread(ctx context.Context, account string) bool {
	from, err := x.spreadFrom(ctx, account)
	if err == nil && from.IsZero() {
		from, err = x.spread(ctx, account, x.now().Add(x.delay))
	}
	return err == nil && x.reached(from)
}

// remembers returns from when on an account is spread as far as the process knows.
func (x *spreads) remembers(account string) (from time.Time, there bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	known, there := x.known[account]
	return known.from, there && (!known.from.IsZero() || x.now().Sub(known.readAt) < spreadLook)
}

// spreadFrom returns from when on an account is spread, zero for never: one read, unless what
// was read before is known.
func (x *spreads) spreadFrom(ctx context.Context, account string) (time.Time, error) {
	if from, there := x.remembers(account); there {
		return from, nil
	}
	found, err := x.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &x.table, Key: x.key(account)})
	if err != nil {
		return time.Time{}, err
	}
	r := reader{item: found.Item}
	from := r.moment("spread_from")
	x.remember(account, from)
	return from, r.err
}

// spread makes an account spread from a time on, unless it is spread already. It returns when
// that is.
func (x *spreads) spread(ctx context.Context, account string, from time.Time) (time.Time, error) {
	written, err := x.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &x.table, Key: x.key(account), ReturnValues: types.ReturnValueUpdatedNew,
		UpdateExpression:          aws.String("SET spread_from = if_not_exists(spread_from, :from)"),
		ExpressionAttributeValues: item{":from": moment(from)},
	})
	if err != nil {
		return time.Time{}, err
	}
	r := reader{item: written.Attributes}
	from = r.moment("spread_from")
	x.remember(account, from)
	return from, r.err
}

func (x *spreads) remember(account string, from time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.known) >= mostSpreads {
		clear(x.known)
	}
	x.known[account] = spreadState{from, x.now()}
}

// forget forgets what is known of an account, so that it is read again.
func (x *spreads) forget(account string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.known, account)
}
