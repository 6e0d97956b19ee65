package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/file"
)

// PendingUpload returns a file that is or was pending, by one consistent read.
//
// Errors: fault.NotFound; fault.Unavailable.
func (s *Files) PendingUpload(ctx context.Context, id string) (file.File, error) {
	f, err := s.get(ctx, promisePrefix+id, promiseItem)
	return f, storeError("get a pending file", err)
}

// Finalize makes a pending file a stored file with the MIME type and the expiry of f, by one read and
// one transaction. If several callers finalize a file, one does it and all succeed.
//
// Errors: fault.NotFound if there is no such pending file, or its time was over and others got its
// storage; fault.Limited if the account would store more than its limit; fault.Unavailable.
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
	err = s.within(ctx, promise.Account, now, f.Room, limit, func(held int64) change {
		return change{
			writes: append(writes[:len(writes):len(writes)], s.releases(f.Room, held)...),
			count: tally{
				bytes: promise.Size - promise.Counts() - held, promises: -entryFor(promise).promises, limit: limit,
			},
		}
	})
	if refused(err) == nil {
		return storeError("finalize a file", err)
	}
	// Another caller has just finalized or abandoned it. A pending file and its entry
	// are removed in the same transaction.
	if promise, err := s.PendingUpload(ctx, f.ID); err != nil || !promise.Pending {
		return err
	}
	return fmt.Errorf("dynamo: finalize a file: the items of the pending file %s disagree", f.ID)
}

// publication returns the writes that turn a pending file into a stored file, except for the count.
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
