package dynamo

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// freeBatch is how many entries one transaction removes. A pending file takes two of the
// hundred writes that a transaction can have, the count one.
const freeBatch = 49

// tally is a change of what an account stores, and its limits.
type tally struct {
	bytes    int64
	promises int
	// limit and most bound the bytes and the pending files; 0 means no limit. spare is how
	// many bytes of the limit must remain.
	limit, spare int64
	most         int
	// parted says that what is counted in the sum itself will be subtracted from a part.
	parted bool
}

// adds reports whether the change may be refused.
func (c tally) adds() bool { return c.bytes > 0 || c.promises > 0 }

// full says which limits of an account kept a change from being made, and whether its sums have
// parts.
type full struct{ bytes, promises, parted bool }

func (f full) any() bool { return f.bytes || f.promises }

// count returns the write that changes the count of an account, on the condition that
// the count stays within its limits and has no parts. If it does not, the write returns the
// count.
func (s *Files) count(account string, c tally) types.TransactWriteItem {
	update := &types.Update{
		TableName: &s.table, Key: fileKey(account, storageItem),
		UpdateExpression:                    aws.String("ADD stored_bytes :bytes, promises :promises"),
		ExpressionAttributeValues:           item{":bytes": number(c.bytes), ":promises": number(int64(c.promises))},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if c.parted {
		*update.UpdateExpression += " SET " + partsAttribute + " = :parts"
		update.ExpressionAttributeValues[":parts"] = number(int64(s.spread.parts))
	}
	var conditions []string
	if c.adds() {
		conditions = append(conditions, "attribute_not_exists("+partsAttribute+")")
	}
	if c.limit > 0 && c.bytes > 0 {
		conditions = append(conditions, "(attribute_not_exists(stored_bytes) OR stored_bytes <= :room)")
		update.ExpressionAttributeValues[":room"] = number(c.limit - c.spare - c.bytes)
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

// countOff returns the write that subtracts what was counted at a place.
func (s *Files) countOff(p filePlace, c tally) types.TransactWriteItem {
	if !p.spread {
		return s.count(p.account, c)
	}
	return s.countPart(p.account, p.part, c, roomGrowth{})
}

// commit makes writes and counts them for what is at a place, unless the account is full.
//
// Errors: refusal if a condition of the writes failed.
func (s *Files) commit(ctx context.Context, p filePlace, writes []types.TransactWriteItem, c tally) (full, error) {
	if p.spread {
		return s.commitParts(ctx, p, writes, c)
	}
	// The count comes last, see isFull.
	err := transact(ctx, s.client, append(writes[:len(writes):len(writes)], s.count(p.account, c)))
	if !isFull(err) {
		return full{}, err
	}
	found := refused(err).last()
	if isParted(found) {
		// Others know that the account is spread. What is counted need not be where it is.
		s.spreads.forget(p.account)
		if _, err := s.everSpread(ctx, p.account); err != nil {
			return full{}, err
		}
		return s.commitParts(ctx, p, writes, c)
	}
	many := c.most > 0 && c.promises > 0 && numberOf(found["promises"]) >= int64(c.most)
	return full{bytes: !many, promises: many}, nil
}

// change is what a transaction writes: the count of an account, and the rest.
type change struct {
	writes []types.TransactWriteItem
	count  tally
}

// within makes a change for what is at a place, and frees what has ended if it needs the
// storage. The change may replace a reservation; it is given what that holds, which is 0
// if another caller has ended it.
//
// Errors: fault.Limited; refusal if another condition failed.
func (s *Files) within(
	ctx context.Context, at filePlace, now time.Time, room file.Reservation, limit int64,
	changeOf func(held holding) change,
) error {
	held := s.expected(room)
	for last := false; ; {
		c := changeOf(held)
		if c.count.limit > 0 && c.count.bytes > c.count.limit {
			return noRoom(limit)
		}
		counted := at
		if held.bytes > 0 && !held.at.spread && !c.count.adds() {
			// No part has room then that was never moved there.
			counted, c.count.parted = held.at, at.spread
		}
		full, err := s.commit(ctx, counted, c.writes, c.count)
		if (full.any() || refused(err) != nil) && room.ID != "" {
			now, readErr := s.held(ctx, room)
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
			return noRoom(limit)
		}
		freed, err := s.freeEnded(ctx, at.account, full.parted, now)
		if err != nil {
			return err
		}
		// If nothing was left to free, others may have freed it since the file was
		// refused: only a refusal after that means that the storage is full.
		last = freed == 0
	}
}

func noRoom(limit int64) error {
	return fault.New(fault.Limited, "The account may store %d bytes; there is no room for the file.", limit)
}

// isFull reports whether only the count of an account, the last write of a change, kept
// the change from being made.
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

// last returns the item of the last write as it was.
func (r *refusal) last() item { return r.items[len(r.items)-1] }

// entry is the item that counts a file, a pending file or a reservation.
type entry struct {
	id     string
	counts int64
	// promise is the id of the pending file whose entry it is, and promises how many
	// pending files it counts.
	promise  string
	promises int
	// bytes and end are those of a reservation, which may have been renewed since
	// it was read.
	room       bool
	bytes, end types.AttributeValue
}

// entryFor returns the entry of a file.
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

// readEntry reads an entry of the index.
func readEntry(i item) (entry, error) {
	id, _ := i["id"].(*types.AttributeValueMemberS)
	if id == nil || !strings.HasPrefix(id.Value, roomPrefix) {
		f, err := readFile(i)
		return entryFor(f), err
	}
	bytes := i["size_bytes"]
	return entry{id: id.Value, counts: numberOf(bytes), room: true, bytes: bytes, end: i["ends_at"]}, nil
}

// Free subtracts a file that has ended from its account's storage, once, however often it
// is called.
//
// Errors: fault.Unavailable.
func (s *Files) Free(ctx context.Context, f Removed) error {
	_, err := s.free(ctx, s.entryPlace(f.File, f.spread), []entry{entryFor(f.File)})
	return storeError("free a file", err)
}

// Abandon removes a pending file: one read, and one transaction.
//
// Errors: fault.NotFound if there is none, or it was finalized; fault.Unavailable.
func (s *Files) Abandon(ctx context.Context, id string) error {
	f, err := s.get(ctx, promisePrefix+id, promiseItem)
	if err != nil {
		return storeError("break a promise", err)
	}
	freed := 0
	if f.Pending {
		freed, err = s.free(ctx, s.entryPlace(f.File, f.spread), []entry{entryFor(f.File)})
	}
	if err == nil && freed == 0 {
		return file.ErrNotFound
	}
	return storeError("break a promise", err)
}

// freeEnded frees a batch of what has ended in each partition of an account by the time. It
// returns how many entries it freed.
func (s *Files) freeEnded(ctx context.Context, account string, spread bool, now time.Time) (int, error) {
	places := []filePlace{{account: account}}
	for part := uint32(0); spread && part < s.spread.parts; part++ {
		places = append(places, filePlace{account, part, true})
	}
	var freed atomic.Int64
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(writesAtOnce)
	for _, p := range places {
		all.Go(func() error {
			n, err := s.freeEndedAt(ctx, p, now)
			freed.Add(int64(n))
			return err
		})
	}
	err := all.Wait()
	return int(freed.Load()), err
}

// freeEndedAt frees a batch of what has ended in a partition. The index may still show entries
// that were just removed, so it is read until something is freed or it ends.
func (s *Files) freeEndedAt(ctx context.Context, p filePlace, now time.Time) (freed int, err error) {
	for start := item(nil); ; {
		entries, next, err := s.ended(ctx, p.partition(), now, start)
		if err != nil {
			return 0, err
		}
		freed, err := s.free(ctx, p, entries)
		if err != nil || freed > 0 || next == nil {
			return freed, err
		}
		start = next
	}
}

// ended reads a page of the index.
func (s *Files) ended(ctx context.Context, partition string, now time.Time, start item) (entries []entry, next item,
	err error) {
	got, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, IndexName: aws.String(filesByEnd), Limit: aws.Int32(freeBatch), ExclusiveStartKey: start,
		KeyConditionExpression:    aws.String("account = :account AND ends_at <= :now"),
		ExpressionAttributeValues: item{":account": text(partition), ":now": text(endText(now))},
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

// free removes entries that are at a place and subtracts what they count there; those that are
// gone have been subtracted already. A pending file is removed with its entry,
// because its bytes would no longer be counted. It returns how many entries existed.
func (s *Files) free(ctx context.Context, at filePlace, entries []entry) (int, error) {
	for len(entries) > 0 {
		var writes []types.TransactWriteItem
		var off tally
		for _, e := range entries {
			remove := s.remove(at.partition(), e.id)
			if e.room {
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
		err := transact(ctx, s.client, append(writes, s.countOff(at, off)))
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
