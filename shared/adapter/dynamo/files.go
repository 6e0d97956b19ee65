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

	"cutroom/shared/domain/file"
)

// Files is a file.Store.
//
// A file has its own item and an entry (see file_item.go), both in its account's partition. One
// transaction writes them together with the account's count of stored bytes. The transaction that
// removes an entry subtracts its bytes, so that the count always equals the sum of the entries.
type Files struct {
	client *dynamodb.Client
	table  string
}

var _ file.Store = (*Files)(nil)

func NewFiles(client *dynamodb.Client, table string) *Files { return &Files{client, table} }

func (s *Files) Create(ctx context.Context, f file.File, limit int64) error {
	own := ownItem(f)
	if f.Pending {
		own = promiseOf(f)
	}
	writes, err := s.puts(own, entryOf(f))
	if err != nil {
		return err
	}
	err = s.within(ctx, f.Account, f.CreatedAt, f.Reserved, limit, func(held int64) change {
		return change{
			writes: append(writes[:len(writes):len(writes)], s.releases(f.Reserved, held)...),
			count:  countChange{bytes: f.Counts() - held, promises: entryFor(f).promises, limit: limit, most: f.Upload.Most},
		}
	})
	return storeError("create a file", err)
}

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

func (s *Files) remove(partition, id string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{
		TableName: &s.table, Key: fileKey(partition, id), ConditionExpression: aws.String("attribute_exists(id)"),
	}}
}

func fileKey(partition, id string) item { return item{"account": text(partition), "id": text(id)} }

func (s *Files) Get(ctx context.Context, account, id string, now time.Time) (file.File, error) {
	if !strings.HasPrefix(id, filePrefix) {
		return file.File{}, file.ErrNotFound
	}
	f, err := s.get(ctx, account, id)
	if err != nil {
		return file.File{}, storeError("get a file", err)
	}
	if f.Expired(now) {
		return file.File{}, file.ErrNotFound
	}
	return f, nil
}

func (s *Files) get(ctx context.Context, partition, id string) (file.File, error) {
	got, err := readItem(ctx, s.client, s.table, fileKey(partition, id))
	if err != nil {
		return file.File{}, err
	}
	if got == nil {
		return file.File{}, file.ErrNotFound
	}
	return readFile(got)
}

// If several callers delete a file at the same time, Delete succeeds for only one of them.
func (s *Files) Delete(ctx context.Context, account, id string, now time.Time) (file.File, error) {
	f, err := s.Get(ctx, account, id, now)
	if err != nil {
		return file.File{}, err
	}
	writes := []types.TransactWriteItem{
		s.remove(account, id), s.remove(account, entryID(f)), s.count(account, countChange{bytes: -f.Size}),
	}
	if !f.UploadUntil.IsZero() {
		writes = append(writes, s.remove(promisePrefix+id, promiseItem))
	}
	if err := transact(ctx, s.client, writes); refused(err) != nil {
		return file.File{}, file.ErrNotFound
	} else if err != nil {
		return file.File{}, storeError("delete a file", err)
	}
	return f, nil
}

func (s *Files) PendingUpload(ctx context.Context, id string) (file.File, error) {
	f, err := s.get(ctx, promisePrefix+id, promiseItem)
	return f, storeError("get a pending file", err)
}

// If several callers finalize a file at the same time, Finalize succeeds for all of them.
func (s *Files) Finalize(ctx context.Context, f file.File, now time.Time) error {
	promise, err := s.get(ctx, promisePrefix+f.ID, promiseItem)
	if err != nil || !promise.Pending {
		return storeError("get a pending file", err)
	}
	writes, err := s.publication(promise, f)
	if err != nil {
		return err
	}
	limit := promise.Upload.Limit
	err = s.within(ctx, promise.Account, now, f.Reserved, limit, func(held int64) change {
		return change{
			writes: append(writes[:len(writes):len(writes)], s.releases(f.Reserved, held)...),
			count: countChange{
				bytes: promise.Size - promise.Counts() - held, promises: -entryFor(promise).promises, limit: limit,
			},
		}
	})
	if refused(err) == nil {
		return storeError("finalize a file", err)
	}
	// Another caller has finalized or abandoned the file in the meantime.
	if promise, err := s.PendingUpload(ctx, f.ID); err != nil || !promise.Pending {
		return err
	}
	return fmt.Errorf("dynamo: finalize a file: the items of the pending file %s are inconsistent", f.ID)
}

// publication returns the writes that publish a pending file, except the write of the count.
func (s *Files) publication(promise, f file.File) ([]types.TransactWriteItem, error) {
	published := promise
	published.Pending, published.MIME, published.ExpiresAt = false, f.MIME, f.ExpiresAt
	kept, err := attributevalue.MarshalMap(promiseOf(published))
	if err != nil {
		return nil, fmt.Errorf("dynamo: write a file: %w", err)
	}
	writes, err := s.puts(ownItem(published), entryOf(published))
	if err != nil {
		return nil, err
	}
	return append(writes, s.remove(promise.Account, entryID(promise)), types.TransactWriteItem{Put: &types.Put{
		TableName: &s.table, Item: kept, ConditionExpression: aws.String("promised = :promised"),
		ExpressionAttributeValues: item{":promised": &types.AttributeValueMemberBOOL{Value: true}},
	}}), nil
}
