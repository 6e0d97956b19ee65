package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/file"
)

// reserveTries bounds how often a reservation is retried if it is not as its holder knows
// it, or if others compete for the last of the storage.
const reserveTries = 20

// A reservation is an entry (see file_item.go), which counts until it is removed: when
// its upload has ended, or when its time is over and an upload of its account needs the
// storage.

// Reserve makes a reservation hold more, by one transaction, and by more calls if the
// account is nearly full.
//
// Errors: fault.Limited; fault.Unavailable.
func (s *Files) Reserve(
	ctx context.Context, r file.Reservation, least, most, limit int64, now time.Time,
) (file.Reservation, error) {
	reserved, err := s.reserve(ctx, r, least, most, limit, now)
	if err != nil {
		return r, storeError("reserve storage", err)
	}
	return reserved, nil
}

func (s *Files) reserve(
	ctx context.Context, r file.Reservation, least, most, limit int64, now time.Time,
) (file.Reservation, error) {
	held, last := holding{r.Bytes, s.placeOf(r.Account, r.ID, s.spreadNow(ctx, r.Account, limit))}, false
	for range reserveTries {
		// More than the least is reserved only if the account has ample storage.
		want, spare := max(most, held.bytes), int64(0)
		if limit > 0 {
			spare = file.Ample * (most - least)
		}
		if least <= held.bytes {
			want = held.bytes // a renewal, which never fails for lack of storage
		} else if limit > 0 && limit-spare < want {
			want, spare = least, 0
		}
		full, err := s.hold(ctx, r, held, want, tally{limit: limit, spare: spare})
		if full.any() && want > least {
			want = least
			full, err = s.hold(ctx, r, held, want, tally{limit: limit})
		}
		switch {
		case err == nil && !full.any():
			r.Bytes = want
			return r, nil
		case refused(err) != nil:
			// It ended and was given to others, or this write was made before.
			found, err := s.held(ctx, r)
			if err != nil {
				return r, err
			}
			if found.bytes == 0 {
				found.at = held.at // where it is made anew
			}
			held = found
		case err != nil:
			return r, err
		case last:
			return r, noRoom(limit)
		default:
			freed, err := s.freeEnded(ctx, r.Account, full.parted, now)
			if err != nil {
				return r, err
			}
			last = freed == 0
		}
	}
	return r, busy(nil)
}

// holding is what a reservation holds, and where its entry is.
type holding struct {
	bytes int64
	at    filePlace
}

// expected returns what a reservation holds as its holder knows it.
func (s *Files) expected(r file.Reservation) holding {
	from, _ := s.spreads.remembers(r.Account)
	return holding{r.Bytes, s.placeOf(r.Account, r.ID, s.spreads.reached(from))}
}

// hold makes a reservation hold after bytes, unless the account is too full by the limits of the
// tally.
//
// Errors: refusal if it does not hold what its holder knows.
func (s *Files) hold(ctx context.Context, r file.Reservation, before holding, after int64, c tally) (full, error) {
	if c.bytes = after - before.bytes; c.limit > 0 && c.bytes > max(c.limit-c.spare, 0) {
		return full{bytes: true, parted: before.at.spread}, nil
	}
	return s.commit(ctx, before.at, []types.TransactWriteItem{s.holds(r, before, after)}, c)
}

// holds returns the write that changes what a reservation holds, on the condition that
// it holds what its holder knows.
func (s *Files) holds(r file.Reservation, before holding, after int64) types.TransactWriteItem {
	put := &types.Put{TableName: &s.table, Item: item{
		"account": text(before.at.partition()), "id": text(roomPrefix + r.ID), "ends_at": text(endText(r.Until)),
		"size_bytes": number(after),
	}}
	if before.bytes == 0 {
		put.ConditionExpression = aws.String("attribute_not_exists(id)")
	} else {
		put.ConditionExpression = aws.String("size_bytes = :before")
		put.ExpressionAttributeValues = item{":before": number(before.bytes)}
	}
	return types.TransactWriteItem{Put: put}
}

// releases returns the write that ends a reservation, if it holds something.
func (s *Files) releases(r file.Reservation, held holding) []types.TransactWriteItem {
	if r.ID == "" || held.bytes == 0 {
		return nil
	}
	return []types.TransactWriteItem{{Delete: &types.Delete{
		TableName: &s.table, Key: fileKey(held.at.partition(), roomPrefix+r.ID),
		ConditionExpression:       aws.String("size_bytes = :held"),
		ExpressionAttributeValues: item{":held": number(held.bytes)},
	}}}
}

// Release ends a reservation, by one transaction if it holds what its holder knows.
//
// Errors: fault.Unavailable.
func (s *Files) Release(ctx context.Context, r file.Reservation) error {
	held := s.expected(r)
	for range reserveTries {
		if held.bytes > 0 {
			err := transact(ctx, s.client, append(s.releases(r, held), s.countOff(held.at, tally{bytes: -held.bytes})))
			if refused(err) == nil {
				return storeError("release storage", err)
			}
		}
		now, err := s.held(ctx, r)
		if err != nil {
			return storeError("release storage", err)
		}
		if now.bytes == 0 {
			return nil
		}
		held = now
	}
	return fmt.Errorf("dynamo: release storage: the reservation %s keeps changing", r.ID)
}

// held returns what a reservation holds, or 0 bytes if there is none.
func (s *Files) held(ctx context.Context, r file.Reservation) (holding, error) {
	var bytes int64
	at, _, err := s.search(ctx, r.Account, r.ID, func(partition string) (bool, error) {
		got, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &s.table, Key: fileKey(partition, roomPrefix+r.ID), ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return false, err
		}
		bytes = numberOf(got.Item["size_bytes"])
		return got.Item != nil, nil
	})
	return holding{bytes, at}, err
}
