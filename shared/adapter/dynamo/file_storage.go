package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/file"
)

// freeBatch is how many entries one transaction removes. A promise takes two of
// the hundred writes that it may have, the count one.
const freeBatch = 49

// count makes a write that adds to the bytes of an account, and fails where they
// would then be more than limit (0 is no limit).
func (s *Files) count(account string, bytes, limit int64) types.TransactWriteItem {
	update := &types.Update{
		TableName: &s.table, Key: fileKey(account, storageItem),
		UpdateExpression:          aws.String("ADD stored_bytes :bytes"),
		ExpressionAttributeValues: item{":bytes": number(bytes)},
	}
	if limit > 0 {
		update.ConditionExpression = aws.String("attribute_not_exists(stored_bytes) OR stored_bytes <= :room")
		update.ExpressionAttributeValues[":room"] = number(limit - bytes)
	}
	return types.TransactWriteItem{Update: update}
}

// Free takes a file that has ended off its account's storage. It counts once,
// however often the file is freed; of the file it needs what RemovedFile gives.
//
// Errors: fault.Unavailable.
func (s *Files) Free(ctx context.Context, f file.File) error {
	_, err := s.free(ctx, f.Account, []file.File{f})
	return storeError("free a file", err)
}

// freeEnded frees files of an account that have ended by the time: a batch of
// them. It gives how many were still to be freed. The index may show what has
// gone a moment ago; it is read on until something is freed, or it ends.
func (s *Files) freeEnded(ctx context.Context, account string, now time.Time) (freed int, err error) {
	for start := item(nil); ; {
		files, next, err := s.ended(ctx, account, now, start)
		if err != nil {
			return 0, err
		}
		freed, err := s.free(ctx, account, files)
		if err != nil || freed > 0 || next == nil {
			return freed, err
		}
		start = next
	}
}

// ended reads a page of the index.
func (s *Files) ended(ctx context.Context, account string, now time.Time, start item) (files []file.File, next item, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	got, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, IndexName: aws.String(filesByEnd), Limit: aws.Int32(freeBatch), ExclusiveStartKey: start,
		KeyConditionExpression:    aws.String("account = :account AND ends_at <= :now"),
		ExpressionAttributeValues: item{":account": text(account), ":now": text(endText(now))},
	})
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range got.Items {
		f, err := readFile(entry)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	return files, got.LastEvaluatedKey, nil
}

// free removes the entries of files and takes their bytes off the account's
// count; entries that are gone have been counted off. A promise goes with its
// entry: its bytes would not be counted any more. It gives how many were there.
func (s *Files) free(ctx context.Context, account string, files []file.File) (int, error) {
	for len(files) > 0 {
		var writes []types.TransactWriteItem
		bytes := int64(0)
		for _, f := range files {
			writes = append(writes, s.remove(account, entryID(f)))
			bytes += f.Size
		}
		for _, f := range files {
			if f.Promised {
				writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{
					TableName: &s.table, Key: fileKey(promisePrefix+f.ID, promiseItem),
				}})
			}
		}
		err := transact(ctx, s.client, append(writes, s.count(account, -bytes, 0)))
		r := refused(err)
		if r == nil {
			return len(files), err
		}
		var left []file.File
		for i, f := range files {
			if !r.failed[i] {
				left = append(left, f)
			}
		}
		files = left
	}
	return 0, nil
}
