package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/domain/file"
)

const (
	// walk limits the number of files that one List reads, in case there are many expired files
	// that DynamoDB has not deleted yet.
	walk = 2000
	// longestPage is the maximum number of files that one call reads. They fit into the megabyte that a call returns.
	longestPage = 1000
	// firstMatches is the maximum number of files that the first call for an MD5 reads.
	firstMatches = 5
)

func (s *Files) List(ctx context.Context, account, after string, limit int, now time.Time) (files []file.File,
	next string, err error) {
	p := s.pagesOf(account, filePrefix, after, limit)
	for walked := 0; ; {
		found, err := p.next(ctx)
		if err != nil {
			return nil, "", storeError("list files", err)
		}
		for i, f := range found {
			if !f.Expired(now) {
				files = append(files, f)
			}
			if len(files) == limit && (i < len(found)-1 || !p.ended) {
				return files, f.ID, nil
			}
		}
		if p.ended {
			return files, "", nil
		}
		if walked += len(found); walked >= max(walk, limit) {
			return files, found[len(found)-1].ID, nil
		}
	}
}

func (s *Files) FindMD5(ctx context.Context, account, md5 string, now time.Time) (file.File, error) {
	p := s.pagesOf(account, md5Prefix+md5+"/", "", firstMatches)
	for !p.ended {
		found, err := p.next(ctx)
		if err != nil {
			return file.File{}, storeError("find a file by its MD5", err)
		}
		for _, f := range found {
			if !f.Expired(now) {
				return f, nil
			}
		}
	}
	return file.File{}, file.ErrNotFound
}

// pages reads an account's items whose ids start with a prefix, from last to first.
type pages struct {
	files           *Files
	account, prefix string
	// size doubles with each call, so that a long run of expired items takes few calls.
	size int
	// start is the key of the item before the next page. ended means that there are no more pages.
	start item
	ended bool
}

// pagesOf returns the pages that follow the item with the given id. size limits the first page.
func (s *Files) pagesOf(account, prefix, after string, size int) *pages {
	p := &pages{files: s, account: account, prefix: prefix, size: size}
	if after != "" {
		p.start = fileKey(account, after)
	}
	return p
}

// next returns the next page. Only the last page can be empty.
func (p *pages) next(ctx context.Context) (page []file.File, err error) {
	for len(page) == 0 && !p.ended {
		got, err := p.files.client.Query(ctx, &dynamodb.QueryInput{
			TableName: &p.files.table, ConsistentRead: aws.Bool(true), ScanIndexForward: aws.Bool(false),
			Limit: aws.Int32(int32(min(p.size, longestPage))), ExclusiveStartKey: p.start,
			KeyConditionExpression:    aws.String("account = :account AND begins_with(id, :prefix)"),
			ExpressionAttributeValues: item{":account": text(p.account), ":prefix": text(p.prefix)},
		})
		if err != nil {
			return nil, err
		}
		p.size, p.start = min(2*p.size, longestPage), got.LastEvaluatedKey
		p.ended = p.start == nil
		for _, i := range got.Items {
			f, err := readFile(i)
			if err != nil {
				return nil, err
			}
			page = append(page, f)
		}
	}
	return page, nil
}
