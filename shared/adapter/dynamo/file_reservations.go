package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/file"
)

// reserveTries is the maximum number of attempts. An attempt fails if the size has changed or
// others take the remaining storage.
const reserveTries = 20

// A reservation is an entry (see file_item.go). It is removed once its upload has ended. If it has
// expired, it is removed when another upload needs the storage.

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
		// Reserve more than the minimum only if the account has plenty of storage left.
		want, spare := max(most, held), int64(0)
		if limit > 0 {
			spare = file.Ample * (most - least)
		}
		if least <= held {
			want = held // a renewal that needs no more storage never fails
		} else if limit > 0 && limit-spare < want {
			want, spare = least, 0
		}
		full, err := s.hold(ctx, r, held, want, countChange{limit: limit, spare: spare})
		if full.any() && want > least {
			want = least
			full, err = s.hold(ctx, r, held, want, countChange{limit: limit})
		}
		switch {
		case err == nil && !full.any():
			r.Bytes = want
			return r, nil
		case refused(err) != nil:
			// Either the reservation has ended and others got its storage, or an earlier attempt succeeded.
			if held, err = s.held(ctx, r); err != nil {
				return r, err
			}
		case err != nil:
			return r, err
		case last:
			return r, file.StorageFull(limit)
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

// hold changes a reservation's size, in bytes, from `before` to `after`. full reports whether the account has too
// little storage under c's limits.
//
// Errors: refusal if the reservation's size is not `before`.
func (s *Files) hold(ctx context.Context, r file.Reservation, before, after int64, c countChange) (full, error) {
	if c.bytes = after - before; c.limit > 0 && c.bytes > max(c.limit-c.spare, 0) {
		return full{bytes: true}, nil
	}
	return s.commit(ctx, r.Account, []types.TransactWriteItem{s.holds(r, before, after)}, c)
}

func (s *Files) holds(r file.Reservation, before, after int64) types.TransactWriteItem {
	put := &types.Put{TableName: &s.table, Item: item{
		"account": text(r.Account), "id": text(reservationPrefix + r.ID), "ends_at": text(endText(r.Until)),
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

func (s *Files) releases(r file.Reservation, held int64) []types.TransactWriteItem {
	if r.ID == "" || held == 0 {
		return nil
	}
	return []types.TransactWriteItem{{Delete: &types.Delete{
		TableName: &s.table, Key: fileKey(r.Account, reservationPrefix+r.ID),
		ConditionExpression:       aws.String("size_bytes = :held"),
		ExpressionAttributeValues: item{":held": number(held)},
	}}}
}

func (s *Files) Release(ctx context.Context, r file.Reservation) error {
	held := r.Bytes
	for range reserveTries {
		if held > 0 {
			err := transact(ctx, s.client, append(s.releases(r, held), s.count(r.Account, countChange{bytes: -held})))
			if refused(err) == nil {
				return storeError("release storage", err)
			}
		}
		var err error
		if held, err = s.held(ctx, r); held == 0 || err != nil {
			return storeError("release storage", err)
		}
	}
	return fmt.Errorf("dynamo: release storage: the reservation %s keeps changing", r.ID)
}

// held returns a reservation's size, or 0 if it does not exist.
func (s *Files) held(ctx context.Context, r file.Reservation) (int64, error) {
	got, err := readItem(ctx, s.client, s.table, fileKey(r.Account, reservationPrefix+r.ID))
	if err != nil {
		return 0, err
	}
	return numberOf(got["size_bytes"]), nil
}
