package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/usage"
)

// Batches is a batch.Store in the usage table, because one transaction stores results and counts their usage.
//
// Each batch has its own partition with its record and an item for each chunk. An account's partition lists its
// batches and has the set of its open batches. Another partition lists the batches of all accounts by state:
// open, ended, or cleared. The transaction that changes a record also updates these lists.
type Batches struct {
	client *dynamodb.Client
	table  string
	usage  *Usage
}

var (
	_ batch.Store     = (*Batches)(nil)
	_ batch.Progress  = (*Batches)(nil)
	_ batch.Retention = (*Batches)(nil)
)

func NewBatches(client *dynamodb.Client, table string) *Batches {
	return &Batches{client: client, table: table, usage: NewUsage(client, table)}
}

const (
	batchPrefix = "batch/"
	recordPart  = "record"
	chunkPrefix = "chunk/"
	chunkDigits = 9
	// An account's partition contains its list and, under the sort key openBatchPart, the set of its open batches.
	batchListPrefix = "batches/"
	openBatchPart   = "open"
	// batchIDs and afterBatchIDs sort before and after the ids of all batches.
	batchIDs, afterBatchIDs = "batch_", "batch`"

	// batchIndex is the partition that lists the batches of all accounts. The next constants are the prefixes of its
	// sort keys.
	batchIndex                                = "batches"
	openBatches, endedBatches, clearedBatches = "open/", "ended/", "cleared/"
)

func batchKey(id string) item { return item{"id": text(batchPrefix + id), "part": text(recordPart)} }
func listKey(account, part string) item {
	return item{"id": text(batchListPrefix + account), "part": text(part)}
}

func indexKey(part string) item { return item{"id": text(batchIndex), "part": text(part)} }

func indexOf(b batch.Batch) string {
	if b.Status.Ended() {
		return endedBatches + b.ID
	}
	return openBatches + b.ID
}

func (s *Batches) Create(ctx context.Context, b batch.Batch, most, kept int) error {
	record, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("dynamo: create a batch: %w", err)
	}
	own := batchKey(b.ID)
	for name, value := range batchValues(b, record) {
		own[name[1:]] = value
	}
	own["account"], own["answered"], own["failed"] = text(b.Account), number(0), number(0)
	listed := listKey(b.Account, b.ID)
	open := &types.Update{
		TableName: &s.table, Key: listKey(b.Account, openBatchPart), UpdateExpression: aws.String("ADD #open :batch"),
		ExpressionAttributeNames: named("open"), ExpressionAttributeValues: item{":batch": texts(b.ID)},
	}
	if most > 0 {
		open.ConditionExpression = aws.String("attribute_not_exists(#open) OR size(#open) < :most")
		open.ExpressionAttributeValues[":most"] = number(int64(most))
	}
	err = transact(ctx, s.client, []types.TransactWriteItem{
		{Put: &types.Put{TableName: &s.table, Item: own, ConditionExpression: aws.String("attribute_not_exists(id)")}},
		{Update: open},
		{Put: &types.Put{TableName: &s.table, Item: listed}},
		s.index(b),
	})
	if r := refused(err); r != nil && r.failed[1] {
		return fault.New(fault.Limited, "The account has reached its limit of open batches (%d).", most)
	}
	if err == nil && kept > 0 {
		err = s.forgetOld(ctx, b.Account, kept)
	}
	return storeError("create a batch", err)
}

func (s *Batches) index(b batch.Batch) types.TransactWriteItem {
	listed := indexKey(indexOf(b))
	listed["batch"] = text(b.ID)
	return types.TransactWriteItem{Put: &types.Put{TableName: &s.table, Item: listed}}
}

func batchValues(b batch.Batch, record []byte) item {
	return item{
		":batch_status": text(string(b.Status)), ":expires_at": moment(b.ExpiresAt),
		":ended_at": number(optionalMillis(b.EndedAt)), ":revision": number(int64(b.Revision)), ":record": text(string(record)),
	}
}

func (s *Batches) Get(ctx context.Context, account, id string) (batch.Batch, error) {
	b, _, err := s.get(ctx, id)
	if err == nil && b.Account != account {
		err = batch.ErrNotFound
	}
	if err != nil {
		return batch.Batch{}, storeError("get a batch", err)
	}
	return b, nil
}

// get returns a batch of any account. cleared reports whether its blobs have been deleted.
func (s *Batches) get(ctx context.Context, id string) (b batch.Batch, cleared bool, err error) {
	got, err := readItem(ctx, s.client, s.table, batchKey(id))
	if err != nil {
		return b, false, err
	}
	if got == nil {
		return b, false, batch.ErrNotFound
	}
	b, err = readBatch(got)
	return b, got["cleared"] != nil, err
}

func readBatch(i item) (b batch.Batch, err error) {
	r := reader{item: i}
	if err := json.Unmarshal([]byte(r.text("record")), &b); err != nil {
		return b, fmt.Errorf("dynamo: read a batch: %w", err)
	}
	b.Status, b.Revision = batch.Status(r.text("batch_status")), int(r.number("revision"))
	b.Answered, b.Failed = int(r.number("answered")), int(r.number("failed"))
	b.ExpiresAt, b.EndedAt = r.moment("expires_at"), optionalTime(r.number("ended_at"))
	return b, r.err
}

func (s *Batches) Change(ctx context.Context, from batch.Status, b batch.Batch) error {
	read := b.Revision
	b.Revision++
	record, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("dynamo: change a batch: %w", err)
	}
	values := batchValues(b, record)
	values[":from"], values[":account"], values[":read"] = text(string(from)), text(b.Account), number(int64(read))
	writes := []types.TransactWriteItem{{Update: &types.Update{
		TableName: &s.table, Key: batchKey(b.ID),
		UpdateExpression: aws.String("SET batch_status = :batch_status, expires_at = :expires_at, " +
			"ended_at = :ended_at, revision = :revision, #record = :record"),
		ConditionExpression:      aws.String("account = :account AND batch_status = :from AND revision = :read"),
		ExpressionAttributeNames: named("record"), ExpressionAttributeValues: values,

		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}}
	if b.Status.Ended() && !from.Ended() {
		writes = append(writes, s.index(b),
			types.TransactWriteItem{Delete: &types.Delete{TableName: &s.table, Key: indexKey(openBatches + b.ID)}},
			types.TransactWriteItem{Update: &types.Update{
				TableName: &s.table, Key: listKey(b.Account, openBatchPart), UpdateExpression: aws.String("DELETE #open :batch"),
				ExpressionAttributeNames: named("open"), ExpressionAttributeValues: item{":batch": texts(b.ID)},
			}})
	}
	err = transact(ctx, s.client, writes)
	if r := refused(err); r != nil {
		old := reader{item: r.items[0]}
		if old.text("account") != b.Account {
			return batch.ErrNotFound
		}
		return fault.New(fault.Conflict, "The batch has changed; its status is %s.", old.text("batch_status"))
	}
	return storeError("change a batch", err)
}

func (s *Batches) Save(ctx context.Context, id string, chunks []batch.Chunk, used []usage.Record) error {
	for len(chunks) > 0 {
		err := transact(ctx, s.client, s.saves(id, chunks, used))
		r := refused(err)
		if r == nil {
			return storeError("save the results of a batch", err)
		}
		if r.failed[len(chunks)] {
			if len(r.items[len(chunks)]) > 0 {
				return batch.ErrEnded
			}
			return batch.ErrNotFound
		}
		var left []batch.Chunk
		for i, c := range chunks {
			old := reader{item: r.items[i]}
			switch {
			case !r.failed[i]:
				left = append(left, c)
			case old.text("blob_name") != c.Blob:
				return fault.New(fault.Conflict, "Another process has already stored results of the batch.")
			}
		}
		chunks = left
	}
	return nil
}

// saves returns the writes for the chunks, the counts and the usage, in this order.
func (s *Batches) saves(id string, chunks []batch.Chunk, used []usage.Record) []types.TransactWriteItem {
	var (
		writes           []types.TransactWriteItem
		answered, failed int64
	)
	for _, c := range chunks {
		key := chunkKey(id, c.Number)
		key["blob_name"], key["failures"], key["lines"] = text(c.Blob), boolean(c.Failures), text(encodeLines(c.Lines))
		writes = append(writes, types.TransactWriteItem{Put: &types.Put{
			TableName: &s.table, Item: key, ConditionExpression: aws.String("attribute_not_exists(id)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}})
		if c.Failures {
			failed += int64(len(c.Lines))
		} else {
			answered += int64(len(c.Lines))
		}
	}
	writes = append(writes, types.TransactWriteItem{Update: &types.Update{
		TableName: &s.table, Key: batchKey(id), UpdateExpression: aws.String("ADD answered :answered, failed :failed"),
		ConditionExpression: aws.String("ended_at = :open"),
		ExpressionAttributeValues: item{
			":answered": number(answered), ":failed": number(failed), ":open": number(optionalMillis(time.Time{})),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
	for _, sum := range sums(used) {
		if write, counts := s.usage.addition(sum); counts {
			writes = append(writes, write)
		}
	}
	return writes
}

// sums adds up records that are stored in the same item. A sum has the id of its first record.
func sums(records []usage.Record) []usage.Record {
	type counted struct {
		account, key, model string
		day                 usage.Day
	}
	at := map[counted]int{}
	var all []usage.Record
	for _, r := range records {
		of := counted{r.Account, r.Key, r.Model, r.Day}
		i, known := at[of]
		if !known {
			at[of] = len(all)
			all = append(all, r)
			continue
		}
		all[i].Add(r.Counts)
	}
	return all
}

func chunkKey(id string, n int) item {
	return item{"id": text(batchPrefix + id), "part": text(fmt.Sprintf("%s%0*d", chunkPrefix, chunkDigits, n))}
}

func (s *Batches) Chunks(ctx context.Context, id string) ([]batch.Chunk, error) {
	var chunks []batch.Chunk
	for i, err := range s.parts(ctx, batchPrefix+id, chunkPrefix, chunkPrefix+":", 0) {
		if err != nil {
			return nil, storeError("read a batch's chunks", err)
		}
		r := reader{item: i}
		numbered, err := strconv.Atoi(r.text("part")[len(chunkPrefix):])
		failures, _ := i["failures"].(*types.AttributeValueMemberBOOL)
		lines, wrong := decodeLines(r.text("lines"))
		if err != nil || wrong != nil || failures == nil || r.err != nil {
			return nil, fmt.Errorf("dynamo: chunk %s of batch %s is invalid", r.text("part"), id)
		}
		chunks = append(chunks, batch.Chunk{Number: numbered, Blob: r.text("blob_name"), Failures: failures.Value, Lines: lines})
	}
	return chunks, nil
}

// encodeLines encodes ascending line numbers as JSON. Each number is stored as the difference from the previous one.
func encodeLines(lines []int) string {
	steps, last := slices.Clone(lines), 0
	slices.Sort(steps)
	for i, line := range steps {
		steps[i], last = line-last, line
	}
	encoded, _ := json.Marshal(steps) // marshaling numbers cannot fail
	return string(encoded)
}

func decodeLines(encoded string) (lines []int, err error) {
	if err := json.Unmarshal([]byte(encoded), &lines); err != nil {
		return nil, err
	}
	last := 0
	for i, step := range lines {
		last += step
		lines[i] = last
	}
	return lines, nil
}
