package dynamo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// Files is a file.Store.
//
// A file has its own item and an entry (see file_item.go), which one transaction writes
// together with the account's count of stored bytes. An entry is removed only in a
// transaction that subtracts its bytes from the count, so that the count is always the
// sum of the entries, whoever removes them and however often: a delete, the stream of
// items whose TTL has passed, or an upload that would not fit beside expired files.
//
// All of them are in the partition of the account, or those of an account whose limit is high in
// several (see file_places.go).
type Files struct {
	client  *dynamodb.Client
	table   string
	spread  fileSpread
	spreads *spreads
	// results is set by ForResults.
	results bool
}

var _ file.Store = (*Files)(nil)

// NewFiles returns the files in the table. The clock tells when an account is spread.
func NewFiles(client *dynamodb.Client, table string, now func() time.Time) *Files {
	return &Files{
		client: client, table: table, spread: usualFileSpread, spreads: newSpreads(client, table, now, filesSpreadKey),
	}
}

// Create records a file whose bytes are stored or pending, by one transaction.
//
// Errors: fault.Limited if the account would then store more than limit bytes
// (0 is no limit), or have more than Promise.Most; fault.Unavailable.
func (s *Files) Create(ctx context.Context, f file.File, limit int64) error {
	spread, promises := s.spreadNow(ctx, f.Account, limit), 0
	own, at := s.ownItem(f, spread), s.entryPlace(f, spread)
	if f.Pending {
		own = promiseOf(f, spread)
	}
	if f.Pending && f.Upload.Bytes > 0 {
		promises = 1
	}
	writes, err := s.puts(own, entryOf(f, at))
	if err != nil {
		return err
	}
	if s.results {
		writes = append(writes, s.absent(s.placeOf(f.Account, f.ID, !spread).partition(), f.ID))
	}
	err = s.within(ctx, at, f.CreatedAt, f.Room, limit, func(held holding) change {
		return change{
			writes: append(writes[:len(writes):len(writes)], s.releases(f.Room, held)...),
			count:  tally{bytes: f.Counts() - held.bytes, promises: promises, limit: limit, most: f.Upload.Most},
		}
	})
	if s.results && refused(err) != nil {
		// Another has recorded it, maybe where this process does not know to look.
		s.spreads.forget(f.Account)
	}
	return storeError("create a file", err)
}

// puts returns the writes of new items.
func (s *Files) puts(items ...fileItem) ([]types.TransactWriteItem, error) {
	var writes []types.TransactWriteItem
	for _, i := range items {
		values, err := attributevalue.MarshalMap(i)
		if err != nil {
			return nil, fmt.Errorf("dynamo: write a file: %w", err)
		}
		writes = append(writes, types.TransactWriteItem{Put: &types.Put{
			TableName: &s.table, Item: values, ConditionExpression: aws.String("attribute_not_exists(id)"),
		}})
	}
	return writes, nil
}

// remove returns the write that removes an item, on the condition that it exists.
func (s *Files) remove(partition, id string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{
		TableName: &s.table, Key: fileKey(partition, id), ConditionExpression: aws.String("attribute_exists(id)"),
	}}
}

// absent returns the condition that an item does not exist.
func (s *Files) absent(partition, id string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &s.table, Key: fileKey(partition, id), ConditionExpression: aws.String("attribute_not_exists(id)"),
	}}
}

func fileKey(partition, id string) item { return item{"account": text(partition), "id": text(id)} }

// Get returns an account's file, by one consistent read, or two of a spread account.
//
// Errors: fault.NotFound; fault.Unavailable.
func (s *Files) Get(ctx context.Context, account, id string, now time.Time) (file.File, error) {
	f, err := s.own(ctx, account, id, now)
	return f.File, err
}

// own returns an account's file as its own item says.
//
// Errors: fault.NotFound; fault.Unavailable.
func (s *Files) own(ctx context.Context, account, id string, now time.Time) (fileRecord, error) {
	if !strings.HasPrefix(id, filePrefix) {
		return fileRecord{}, file.ErrNotFound
	}
	var f fileRecord
	_, found, err := s.search(ctx, account, id, func(partition string) (bool, error) {
		var err error
		f, err = s.get(ctx, partition, id)
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fileRecord{}, storeError("get a file", err)
	}
	if !found || f.Expired(now) {
		return fileRecord{}, file.ErrNotFound
	}
	return f, nil
}

// get reads an item.
//
// Errors: fault.NotFound.
func (s *Files) get(ctx context.Context, partition, id string) (fileRecord, error) {
	got, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: fileKey(partition, id), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return fileRecord{}, err
	}
	if got.Item == nil {
		return fileRecord{}, file.ErrNotFound
	}
	return readFileRecord(got.Item)
}

// Delete removes the record of an account's file and returns the file: one read, and one
// transaction, which succeeds for one of several callers.
//
// Errors: fault.NotFound; fault.Unavailable.
func (s *Files) Delete(ctx context.Context, account, id string, now time.Time) (file.File, error) {
	f, err := s.own(ctx, account, id, now)
	if err != nil {
		return file.File{}, err
	}
	at := s.entryPlace(f.File, f.spread)
	writes := []types.TransactWriteItem{s.remove(s.placeOf(account, id, f.spread).partition(), id),
		s.remove(at.partition(), entryID(f.File)), s.countOff(at, tally{bytes: -f.Size})}
	if !f.UploadUntil.IsZero() {
		writes = append(writes, s.remove(promisePrefix+id, promiseItem))
	}
	if err := transact(ctx, s.client, writes); refused(err) != nil {
		return file.File{}, file.ErrNotFound
	} else if err != nil {
		return file.File{}, storeError("delete a file", err)
	}
	return f.File, nil
}
