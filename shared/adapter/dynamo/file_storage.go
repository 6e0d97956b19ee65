package dynamo

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/file"
)

// freeBatch is the maximum number of entries that one transaction removes. The transaction may need
// two writes per pending file, and one for the count.
const freeBatch = 49

type countChange struct {
	bytes    int64
	promises int
	// limit is the maximum number of stored bytes, of which spare must remain free. most is the maximum number of
	// pending files. 0 means no limit.
	limit, spare int64
	most         int
}

type full struct{ bytes, promises bool }

func (f full) any() bool { return f.bytes || f.promises }

// count returns the write that changes an account's count within its limits. If its condition
// fails, the error contains the current count.
func (s *Files) count(account string, c countChange) types.TransactWriteItem {
	update := &types.Update{
		TableName: &s.table, Key: fileKey(account, storageItem),
		UpdateExpression:                    aws.String("ADD stored_bytes :bytes, promises :promises"),
		ExpressionAttributeValues:           item{":bytes": number(c.bytes), ":promises": number(int64(c.promises))},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	var conditions []string
	if c.limit > 0 && c.bytes > 0 {
		conditions = append(conditions, "(attribute_not_exists(stored_bytes) OR stored_bytes <= :rest)")
		update.ExpressionAttributeValues[":rest"] = number(c.limit - c.spare - c.bytes)
	}
	if c.most > 0 && c.promises > 0 {
		conditions = append(conditions, "(attribute_not_exists(promises) OR promises < :most)")
		update.ExpressionAttributeValues[":most"] = number(int64(c.most))
	}
	if len(conditions) > 0 {
		update.ConditionExpression = aws.String(strings.Join(conditions, " AND "))
	}
	return types.TransactWriteItem{Update: update}
}

// commit makes the writes and updates the account's count in one transaction, unless the account is full.
func (s *Files) commit(ctx context.Context, account string, writes []types.TransactWriteItem, c countChange) (full, error) {
	// The write of the count must be last (see isFull).
	err := transact(ctx, s.client, append(writes[:len(writes):len(writes)], s.count(account, c)))
	if !isFull(err) {
		return full{}, err
	}
	many := c.most > 0 && c.promises > 0 && numberOf(refused(err).last()["promises"]) >= int64(c.most)
	return full{bytes: !many, promises: many}, nil
}

// change holds the writes of a transaction, without the one that changes the account's count.
type change struct {
	writes []types.TransactWriteItem
	count  countChange
}

// within commits the change that changeOf returns. If there is too little storage, it frees expired entries and tries
// again. The change may replace a reservation: changeOf receives the reservation's size, or 0 if another caller has
// ended it.
//
// Errors: fault.Limited; refusal if another condition failed.
func (s *Files) within(
	ctx context.Context, account string, now time.Time, reservation file.Reservation, limit int64,
	changeOf func(held int64) change,
) error {
	held := reservation.Bytes
	for last := false; ; {
		c := changeOf(held)
		if c.count.limit > 0 && c.count.bytes > c.count.limit {
			return file.StorageFull(limit)
		}
		full, err := s.commit(ctx, account, c.writes, c.count)
		if (full.any() || refused(err) != nil) && reservation.ID != "" {
			now, readErr := s.held(ctx, reservation)
			if readErr != nil {
				return readErr
			}
			if now != held {
				held = now
				continue
			}
		}
		if !full.any() {
			return err
		}
		if last {
			if full.promises {
				return file.ErrTooManyPending
			}
			return file.StorageFull(limit)
		}
		freed, err := s.freeEnded(ctx, account, now)
		if err != nil {
			return err
		}
		// If nothing was left to free, another caller may have freed storage since the rejection, so try once more.
		last = freed == 0
	}
}

// isFull reports whether a change failed only because its last write, the account's count, was rejected.
func isFull(err error) bool {
	r := refused(err)
	if r == nil {
		return false
	}
	last := len(r.failed) - 1
	for _, failed := range r.failed[:last] {
		if failed {
			return false
		}
	}
	return r.failed[last]
}

func (r *refusal) last() item { return r.items[len(r.items)-1] }

type entry struct {
	id     string
	counts int64
	// promise is the id of the entry's pending file, if any. promises is the number of pending files.
	promise  string
	promises int
	// reservation marks a reservation. It may have been renewed since it was read.
	reservation bool
	bytes, end  types.AttributeValue
}

func entryFor(f file.File) entry {
	e := entry{id: entryID(f), counts: f.Counts()}
	if f.Pending {
		e.promise = f.ID
		if f.Upload.Bytes > 0 {
			e.promises = 1
		}
	}
	return e
}

func readEntry(i item) (entry, error) {
	id, _ := i["id"].(*types.AttributeValueMemberS)
	if id == nil || !strings.HasPrefix(id.Value, reservationPrefix) {
		f, err := readFile(i)
		return entryFor(f), err
	}
	bytes := i["size_bytes"]
	return entry{id: id.Value, counts: numberOf(bytes), reservation: true, bytes: bytes, end: i["ends_at"]}, nil
}

func (s *Files) Free(ctx context.Context, f file.File) error {
	_, err := s.free(ctx, f.Account, []entry{entryFor(f)})
	return storeError("free a file", err)
}

func (s *Files) Abandon(ctx context.Context, id string) error {
	f, err := s.get(ctx, promisePrefix+id, promiseItem)
	if err != nil {
		return storeError("abandon a pending file", err)
	}
	freed := 0
	if f.Pending {
		freed, err = s.free(ctx, f.Account, []entry{entryFor(f)})
	}
	if err == nil && freed == 0 {
		return file.ErrNotFound
	}
	return storeError("abandon a pending file", err)
}

// freeEnded frees some of an account's ended entries and returns their number. The index may still contain entries
// that were just removed, so freeEnded reads on until it has freed an entry or reached the end of the index.
func (s *Files) freeEnded(ctx context.Context, account string, now time.Time) (int, error) {
	for start := item(nil); ; {
		entries, next, err := s.ended(ctx, account, now, start)
		if err != nil {
			return 0, err
		}
		freed, err := s.free(ctx, account, entries)
		if err != nil || freed > 0 || next == nil {
			return freed, err
		}
		start = next
	}
}

func (s *Files) ended(ctx context.Context, account string, now time.Time, start item) (entries []entry, next item,
	err error) {
	got, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, IndexName: aws.String(filesByEnd), Limit: aws.Int32(freeBatch), ExclusiveStartKey: start,
		KeyConditionExpression:    aws.String("account = :account AND ends_at <= :now"),
		ExpressionAttributeValues: item{":account": text(account), ":now": text(endText(now))},
	})
	if err != nil {
		return nil, nil, err
	}
	for _, found := range got.Items {
		e, err := readEntry(found)
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, e)
	}
	return entries, got.LastEvaluatedKey, nil
}

// free removes the entries that still exist, subtracts their bytes from the count, and returns how many it removed.
// It removes a pending file along with its entry, because nothing would count its bytes afterwards.
func (s *Files) free(ctx context.Context, account string, entries []entry) (int, error) {
	for len(entries) > 0 {
		var writes []types.TransactWriteItem
		var off countChange
		for _, e := range entries {
			remove := s.remove(account, e.id)
			if e.reservation {
				remove.Delete.ConditionExpression = aws.String("size_bytes = :bytes AND ends_at = :end")
				remove.Delete.ExpressionAttributeValues = item{":bytes": e.bytes, ":end": e.end}
			}
			writes = append(writes, remove)
			off.bytes -= e.counts
			off.promises -= e.promises
		}
		for _, e := range entries {
			if e.promise != "" {
				writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{
					TableName: &s.table, Key: fileKey(promisePrefix+e.promise, promiseItem),
				}})
			}
		}
		err := transact(ctx, s.client, append(writes, s.count(account, off)))
		r := refused(err)
		if r == nil {
			return len(entries), err
		}
		var left []entry
		for i, e := range entries {
			if !r.failed[i] {
				left = append(left, e)
			}
		}
		entries = left
	}
	return 0, nil
}
