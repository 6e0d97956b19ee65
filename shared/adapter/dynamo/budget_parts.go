package dynamo

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/budget"
)

// A job that holds of a budget makes six writes for it, and one partition takes a thousand in
// a second. A counter that many jobs can take from therefore has parts, in partitions of
// their own. An amount is moved from the counter to a part, and jobs take it there. So a
// part is a counter with a limit of 0: its number is below 0 by what is left in it, and the
// sum of all numbers is what is used. As nothing is moved that does not remain on the
// counter, the sum stays within the limit. Before a call is refused, what is left in the
// parts goes back to the counter. What was moved under one limit is not taken under a lower
// one: then an amount has to be moved anew, for which the counter must have room.
//
// The name of a part is its counter's with a number at the window, which the holds in the
// records of jobs have too. To whoever settles one it is a counter like any other.

// spread says which counters have parts.
type spread struct {
	// parts is how many there are, and manyParts how many of a limit with room for manyFrom
	// claims or more.
	parts, manyParts uint32
	// from is how many claims a limit has room for, at least, so that they take from
	// parts. A budget with less cannot be taken from for long by many jobs a second.
	from, manyFrom int64
	// fewest and most are for how many claims an amount is moved at once, and portion the
	// part of what remains that is moved at most. Where that is less than the fewest, claims
	// take from the counter itself.
	fewest, most, portion int64
}

var usualSpread = spread{
	parts: 16, from: 100_000, manyParts: 64, manyFrom: 10_000_000, fewest: 16, most: 4096, portion: 256,
}

// The attributes of a counter that say how many parts it has. One that had many keeps the
// second, whatever its limit is later, and programs of before there were many write the first.
const fewPartsAttribute, manyPartsAttribute = "parts", "many_parts"

// partsFor returns how many parts a claim's limit is spread over, 0 for none, and the attribute
// that says so.
func (s spread) partsFor(c budget.Claim) (parts uint32, attribute string) {
	switch claims := c.Limit / max(c.Amount, 1); {
	case claims >= s.manyFrom:
		return s.manyParts, manyPartsAttribute
	case claims >= s.from:
		return s.parts, fewPartsAttribute
	}
	return 0, fewPartsAttribute
}

// partsOf returns how many parts a counter has.
func partsOf(r *reader) uint32 {
	return uint32(max(r.number(fewPartsAttribute), r.number(manyPartsAttribute)))
}

// partMark is between the window of a counter and the number of a part.
const partMark = "#"

// partOf returns a part of a counter.
func partOf(c budget.Counter, part uint32) budget.Counter {
	c.Window += budget.Window(partMark + strconv.FormatUint(uint64(part), 10))
	return c
}

// wholeWindow returns the window of a counter or of a part of it.
func wholeWindow(c budget.Counter) budget.Window {
	window, _, _ := strings.Cut(string(c.Window), partMark)
	return budget.Window(window)
}

// isPart reports whether a counter is a part of one.
func isPart(c budget.Counter) bool { return wholeWindow(c) != c.Window }

// spreadClaims returns where a job tries to take its claims first.
func (b *Budgets) spreadClaims(id string, claims []budget.Claim) []budget.Claim {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id)) // a hash never fails
	at := make([]budget.Claim, len(claims))
	for i, c := range claims {
		at[i] = c
		if parts, _ := b.spread.partsFor(c); parts > 0 {
			at[i].Counter = partOf(c.Counter, hash.Sum32()%parts)
		}
	}
	return at
}

// makeRoom is called for a claim that was refused, at its counter or at a part of it. It
// returns where to take it now.
//
// Errors: fault.Exhausted if too little remains.
func (b *Budgets) makeRoom(ctx context.Context, claim, at budget.Claim, now time.Time) (budget.Claim, error) {
	read, err := b.endDead(ctx, claim.Counter)
	if err != nil {
		return at, err
	}
	room := claim.Limit - read.used
	if isPart(at.Counter) {
		if n := min(room/b.spread.portion, b.spread.most*claim.Amount); n >= b.spread.fewest*claim.Amount {
			return at, b.fillPart(ctx, claim, at.Counter, n)
		}
	}
	if room < claim.Amount {
		freed, err := b.freed(ctx, claim.Counter, read)
		if err != nil {
			return at, err
		}
		if !freed {
			return at, budget.UsedUp(claim.Counter, now)
		}
	}
	return claim, nil
}

// takePart returns the write that takes an amount from a part, on the condition that so much
// is left there, and was moved there while the limit was no higher.
func (b *Budgets) takePart(c budget.Claim) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &b.table, Key: usedKey(c.Counter),
		UpdateExpression:         aws.String("SET #ttl = :ttl ADD used :amount"),
		ConditionExpression:      aws.String("used <= :room AND max_used <= :limit"),
		ExpressionAttributeNames: map[string]string{"#ttl": ttlAttribute},
		ExpressionAttributeValues: item{
			":amount": number(c.Amount), ":room": number(-c.Amount), ":limit": number(c.Limit), ":ttl": counterEnd(c.Counter),
		},
	}}
}

// fillPart moves an amount from a counter to a part that the claim cannot be taken from,
// unless another call has changed either meanwhile. As the counter, with all that was moved
// from it, is then within the limit, so is what was left in the part.
func (b *Budgets) fillPart(ctx context.Context, claim budget.Claim, part budget.Counter, amount int64) error {
	parts, attribute := b.spread.partsFor(claim)
	err := transact(ctx, b.client, []types.TransactWriteItem{
		{Update: &types.Update{
			TableName: &b.table, Key: usedKey(claim.Counter),
			UpdateExpression:         aws.String("SET #ttl = :ttl, #parts = :parts ADD used :amount, moves :one"),
			ConditionExpression:      aws.String("attribute_not_exists(used) OR used <= :room"),
			ExpressionAttributeNames: map[string]string{"#ttl": ttlAttribute, "#parts": attribute},
			ExpressionAttributeValues: item{
				":amount": number(amount), ":room": number(claim.Limit - amount), ":ttl": counterEnd(claim.Counter),
				":parts": number(int64(parts)), ":one": number(1),
			},
		}},
		{Update: &types.Update{
			TableName: &b.table, Key: usedKey(part),
			UpdateExpression:         aws.String("SET #ttl = :ttl, max_used = :limit ADD used :amount"),
			ConditionExpression:      aws.String("attribute_not_exists(max_used) OR max_used > :limit OR used > :least"),
			ExpressionAttributeNames: map[string]string{"#ttl": ttlAttribute},
			ExpressionAttributeValues: item{
				":amount": number(-amount), ":least": number(-claim.Amount), ":limit": number(claim.Limit),
				":ttl": counterEnd(part),
			},
		}},
	})
	if refused(err) != nil {
		return nil
	}
	return err
}

// freed brings back to a counter what is left in its parts. It reports whether the counter
// may have more room than was read.
func (b *Budgets) freed(ctx context.Context, c budget.Counter, read counted) (bool, error) {
	if read.any || read.parts == 0 {
		return read.any, nil
	}
	var some atomic.Bool
	err := b.eachPart(ctx, c, read.parts, func(ctx context.Context, part budget.Counter) error {
		emptied, err := b.emptyPart(ctx, c, part)
		if emptied {
			some.Store(true)
		}
		return err
	})
	if err != nil || some.Load() {
		return some.Load(), err
	}
	// Another call may have brought it back since the counter was read.
	again, err := b.endDead(ctx, c)
	return again.any || again.moves != read.moves, err
}

// emptyPart moves what is left in a part to its counter. It reports whether there was
// anything.
func (b *Budgets) emptyPart(ctx context.Context, c, part budget.Counter) (bool, error) {
	read, err := b.endDead(ctx, part)
	if err != nil || read.used >= 0 {
		return read.any, err
	}
	back := b.returnUsed(c, -read.used)
	back.Update.UpdateExpression = aws.String("ADD used :amount, moves :one")
	back.Update.ExpressionAttributeValues[":one"] = number(1)
	err = transact(ctx, b.client, []types.TransactWriteItem{back, b.takeUsed(part, 0, -read.used)})
	if refused(err) != nil {
		return true, nil // a job has taken of it
	}
	return true, err
}

// partsAtOnce is how many parts are read at the same time.
const partsAtOnce = 8

func (b *Budgets) eachPart(ctx context.Context, c budget.Counter, parts uint32,
	do func(ctx context.Context, part budget.Counter) error) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(partsAtOnce)
	for n := range parts {
		all.Go(func() error { return do(ctx, partOf(c, n)) })
	}
	return all.Wait()
}

// usedOf returns what is used on a counter and its parts, after ending their leases that are
// over. It reads again what was moved between them meanwhile.
func (b *Budgets) usedOf(ctx context.Context, c budget.Counter) (int64, error) {
	for range shareTries {
		read, err := b.endAllDead(ctx, c)
		if err != nil || read.parts == 0 {
			return read.used, err
		}
		var inParts atomic.Int64
		err = b.eachPart(ctx, c, read.parts, func(ctx context.Context, part budget.Counter) error {
			read, err := b.endAllDead(ctx, part)
			inParts.Add(read.used)
			return err
		})
		if err != nil {
			return 0, err
		}
		again, err := b.endAllDead(ctx, c)
		if err != nil || again.moves == read.moves {
			return again.used + inParts.Load(), err
		}
	}
	return 0, busy(errors.New("a counter changes all the time"))
}

// endAllDead reads a counter, or a part, once all leases on it that are over have ended.
func (b *Budgets) endAllDead(ctx context.Context, c budget.Counter) (counted, error) {
	for {
		read, err := b.endDead(ctx, c)
		if err != nil || !read.any {
			return read, err
		}
	}
}
