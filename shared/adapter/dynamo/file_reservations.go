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
	held, last := r.Bytes, false
	for range reserveTries {
		// More than the least is reserved only if the account has ample storage.
		want, within := max(most, held), limit
		if limit > 0 {
			within -= file.Ample * (most - least)
		}
		if least <= held {
			want = held // a renewal, which never fails for lack of storage
		} else if limit > 0 && within < want {
			want, within = least, limit
		}
		full, err := s.hold(ctx, r, held, want, within)
		if full && want > least {
			want = least
			full, err = s.hold(ctx, r, held, want, limit)
		}
		switch {
		case err == nil && !full:
			r.Bytes = want
			return r, nil
		case refused(err) != nil:
			// It ended and was given to others, or this write was made before.
			if held, err = s.held(ctx, r); err != nil {
				return r, err
			}
		case err != nil:
			return r, err
		case last:
			return r, noRoom(limit)
		default:
			freed, err := s.freeEnded(ctx, r.Account, now)
			if err != nil {
				return r, err
			}
			last = freed == 0
		}
	}
	return r, busy(nil)
}

// hold makes a reservation hold after bytes, and reports whether the account is too full
// for that.
//
// Errors: refusal if it does not hold what its holder knows.
func (s *Files) hold(ctx context.Context, r file.Reservation, before, after, limit int64) (full bool, err error) {
	if limit > 0 && after-before > limit {
		return true, nil
	}
	err = transact(ctx, s.client, []types.TransactWriteItem{
		s.holds(r, before, after), s.count(r.Account, tally{bytes: after - before, limit: limit}),
	})
	if isFull(err) {
		return true, nil
	}
	return false, err
}

// holds returns the write that changes what a reservation holds, on the condition that
// it holds what its holder knows.
func (s *Files) holds(r file.Reservation, before, after int64) types.TransactWriteItem {
	put := &types.Put{TableName: &s.table, Item: item{
		"account": text(r.Account), "id": text(roomPrefix + r.ID), "ends_at": text(endText(r.Until)),
		"size_bytes": number(after),
	}}
	if before == 0 {
		put.ConditionExpression = aws.String("attribute_not_exists(id)")
	} else {
		put.ConditionExpression = aws.String("size_bytes = :before")
		put.ExpressionAttributeValues = item{":before": number(before)}
	}
	return types.TransactWriteItem{Put: put}
}

// releases returns the write that ends a reservation, if it holds something.
func (s *Files) releases(r file.Reservation, held int64) []types.TransactWriteItem {
	if r.ID == "" || held == 0 {
		return nil
	}
	return []types.TransactWriteItem{{Delete: &types.Delete{
		TableName: &s.table, Key: fileKey(r.Account, roomPrefix+r.ID),
		ConditionExpression:       aws.String("size_bytes = :held"),
		ExpressionAttributeValues: item{":held": number(held)},
	}}}
}

// Release ends a reservation, by one transaction if it holds what its holder knows.
//
// Errors: fault.Unavailable.
func (s *Files) Release(ctx context.Context, r file.Reservation) error {
	held := r.Bytes
	for range reserveTries {
		if held > 0 {
			err := transact(ctx, s.client, append(s.releases(r, held), s.count(r.Account, tally{bytes: -held})))
			if refused(err) == nil {
				return storeError("release storage", err)
			}
		}
		now, err := s.held(ctx, r)
		if err != nil {
			return storeError("release storage", err)
		}
		if now == 0 {
			return nil
		}
		held = now
	}
	return fmt.Errorf("dynamo: release storage: the reservation %s keeps changing", r.ID)
}

// held returns what a reservation holds, or 0 if there is none.
func (s *Files) held(ctx context.Context, r file.Reservation) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	got, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: fileKey(r.Account, roomPrefix+r.ID), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return 0, err
	}
	return numberOf(got.Item["size_bytes"]), nil
}
