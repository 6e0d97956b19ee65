package dynamo

import (
	"context"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
)

func (s *Batches) List(ctx context.Context, account, after string, limit int) ([]batch.Batch, error) {
	if after == "" {
		after = afterBatchIDs
	}
	ids, err := s.listed(ctx, account, after, limit)
	if err != nil {
		return nil, storeError("list batches", err)
	}
	items, err := s.records(ctx, ids)
	if err != nil {
		return nil, storeError("list batches", err)
	}
	return readBatches(items)
}

// listed returns the ids of an account's batches, newest first, that come after the given id. A
// limit of 0 means no limit.
func (s *Batches) listed(ctx context.Context, account, after string, limit int) (ids []string, err error) {
	page := 0
	if limit > 0 {
		page = limit + 1
	}
	for i, err := range s.parts(ctx, batchListPrefix+account, after, batchIDs, page) {
		if err != nil {
			return nil, err
		}
		r := reader{item: i}
		// BETWEEN includes both limits, so skip the given id.
		if id := r.text("part"); id != after {
			ids = append(ids, id)
		}
		if len(ids) == limit && limit > 0 {
			break
		}
	}
	return ids, nil
}

// parts returns a partition's items in ascending or descending order of their sort keys. The range of keys includes
// its limits, from and to. A page size of 0 means up to a megabyte.
func (s *Batches) parts(ctx context.Context, partition, from, to string, page int) iter.Seq2[item, error] {
	ascending := from <= to
	input := &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true), ScanIndexForward: &ascending,
		KeyConditionExpression:    aws.String("id = :id AND part BETWEEN :low AND :high"),
		ExpressionAttributeValues: item{":id": text(partition), ":low": text(min(from, to)), ":high": text(max(from, to))},
	}
	if page > 0 {
		input.Limit = aws.Int32(int32(min(page, longestPage)))
	}
	return queried(ctx, s.client, input)
}

// records returns the items of the given batches in the same order. It skips missing batches.
func (s *Batches) records(ctx context.Context, ids []string) ([]item, error) {
	known := make(map[string]item, len(ids))
	for left := ids; len(left) > 0; left = left[min(itemsAtOnce, len(left)):] {
		var keys []item
		for _, id := range left[:min(itemsAtOnce, len(left))] {
			keys = append(keys, batchKey(id))
		}
		found, err := readItems(ctx, s.client, s.table, keys)
		if err != nil {
			return nil, err
		}
		for _, i := range found {
			r := reader{item: i}
			known[r.text("id")] = i
		}
	}
	var items []item
	for _, id := range ids {
		if i, ok := known[batchPrefix+id]; ok {
			items = append(items, i)
		}
	}
	return items, nil
}

func readBatches(items []item) (batches []batch.Batch, err error) {
	for _, i := range items {
		b, err := readBatch(i)
		if err != nil {
			return nil, err
		}
		batches = append(batches, b)
	}
	return batches, nil
}

func (s *Batches) Open(ctx context.Context) ([]batch.Batch, error) {
	return s.standing(ctx, openBatches, 0)
}

func (s *Batches) Finished(ctx context.Context, limit int) ([]batch.Batch, error) {
	return s.standing(ctx, endedBatches, limit)
}

func (s *Batches) standing(ctx context.Context, list string, limit int) ([]batch.Batch, error) {
	items, err := s.listItems(ctx, list, limit)
	if err != nil {
		return nil, storeError("list batches", err)
	}
	return readBatches(items)
}

// A limit of 0 means no limit.
func (s *Batches) listItems(ctx context.Context, list string, limit int) ([]item, error) {
	var ids []string
	for i, err := range s.parts(ctx, batchIndex, list, list+afterBatchIDs, limit) {
		if err != nil {
			return nil, err
		}
		if limit > 0 && len(ids) == limit {
			break
		}
		r := reader{item: i}
		ids = append(ids, r.text("batch"))
	}
	return s.records(ctx, ids)
}

func (s *Batches) Cleared(ctx context.Context, id string) error {
	b, cleared, err := s.get(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && (cleared || !b.Status.Ended()) {
		return nil
	}
	if err != nil {
		return storeError("clear a batch", err)
	}
	for i, err := range s.parts(ctx, batchPrefix+id, chunkPrefix, chunkPrefix+":", 0) {
		if err == nil {
			err = s.remove(ctx, item{"id": i["id"], "part": i["part"]})
		}
		if err != nil {
			return storeError("clear a batch", err)
		}
	}
	listed := indexKey(clearedPart(b))
	listed["batch"], listed["account"] = text(b.ID), text(b.Account)
	err = transact(ctx, s.client, []types.TransactWriteItem{
		{Update: &types.Update{
			TableName: &s.table, Key: batchKey(id), UpdateExpression: aws.String("SET cleared = :cleared"),
			ConditionExpression: aws.String("attribute_exists(id)"), ExpressionAttributeValues: item{":cleared": boolean(true)},
		}},
		{Delete: &types.Delete{TableName: &s.table, Key: indexKey(endedBatches + id)}},
		{Put: &types.Put{TableName: &s.table, Item: listed}},
	})
	if refused(err) != nil {
		return nil // another process deleted it
	}
	return storeError("clear a batch", err)
}

func (s *Batches) remove(ctx context.Context, key item) error {
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.table, Key: key})
	return err
}

// clearedPart returns a sort key that orders cleared batches by end time.
func clearedPart(b batch.Batch) string { return clearedBatches + endText(b.EndedAt) + "/" + b.ID }

func (s *Batches) Forget(ctx context.Context, before time.Time) error {
	for i, err := range s.parts(ctx, batchIndex, clearedBatches, clearedBatches+endText(before), 0) {
		if err == nil {
			r := reader{item: i}
			err = s.forget(ctx, r.text("account"), r.text("batch"), r.text("part"))
		}
		if err != nil {
			return storeError("forget batches", err)
		}
	}
	return nil
}

func (s *Batches) forget(ctx context.Context, account, id, part string) error {
	var writes []types.TransactWriteItem
	for _, key := range []item{batchKey(id), listKey(account, id), indexKey(part)} {
		writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{TableName: &s.table, Key: key}})
	}
	return transact(ctx, s.client, writes)
}

func (s *Batches) forgetOld(ctx context.Context, account string, kept int) error {
	ids, err := s.listed(ctx, account, afterBatchIDs, 0)
	if err != nil || len(ids) <= kept {
		return err
	}
	for _, id := range ids[kept:] {
		b, cleared, err := s.get(ctx, id)
		if err == nil && cleared {
			err = s.forget(ctx, account, id, clearedPart(b))
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

func (s *Batches) Known(ctx context.Context, id string) (bool, error) {
	_, cleared, err := s.get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && !cleared, storeError("look up a batch", err)
}

var _ batch.Claims = (*Batches)(nil)

func (s *Batches) Standings(ctx context.Context) ([]batch.Standing, error) {
	items, err := s.listItems(ctx, openBatches, 0)
	if err != nil {
		return nil, storeError("list open batches", err)
	}
	var all []batch.Standing
	for _, i := range items {
		b, err := readBatch(i)
		if err != nil {
			return nil, err
		}
		r := reader{item: i}
		one := batch.Standing{
			Batch: b, HeldUntil: r.moment("held_until"), Due: r.moment("due_at"), Fruitless: int(r.number("fruitless")),
		}
		if r.err != nil {
			return nil, r.err
		}
		all = append(all, one)
	}
	return all, nil
}

func (s *Batches) Claim(ctx context.Context, id, holder string, now, until time.Time) (claimed bool, err error) {
	_, refused, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: batchKey(id), UpdateExpression: aws.String("SET held_by = :holder, held_until = :until"),
		ConditionExpression: aws.String(
			"attribute_exists(id) AND (attribute_not_exists(held_until) OR held_until <= :now OR held_by = :holder)"),
		ExpressionAttributeValues: item{":holder": text(holder), ":until": moment(until), ":now": moment(now)},
	})
	return err == nil && !refused, storeError("claim a batch", err)
}

func (s *Batches) Release(ctx context.Context, id, holder string, due time.Time, fruitless int) error {
	_, _, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: batchKey(id),
		UpdateExpression:    aws.String("SET due_at = :due, fruitless = :fruitless REMOVE held_until"),
		ConditionExpression: aws.String("held_by = :holder"),
		ExpressionAttributeValues: item{
			":holder": text(holder), ":due": moment(due), ":fruitless": number(int64(fruitless)),
		},
	})
	return storeError("release a batch", err)
}
