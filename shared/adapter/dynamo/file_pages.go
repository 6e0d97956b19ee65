package dynamo

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/file"
)

const (
	// walk is how many files one List reads at most. It bounds a read among expired
	// files that DynamoDB has not deleted yet.
	walk = 2000
	// longestPage is how many files one call reads at most: they fit into the megabyte
	// that a call returns.
	longestPage = 1000
	// firstMatches is how many files the first call for an MD5 reads.
	firstMatches = 5
	// unitFiles is how many files a consistent read of a partition returns for the least that it
	// costs.
	unitFiles = 7
)

// List returns an account's files, newest first, at most limit, beginning after the file
// with the id; an empty id begins with the newest. It may return fewer, or none, even if
// more follow: next is the id to continue from, and is empty if nothing follows. It is
// one consistent read, or one of each partition of a spread account, and more if files have
// expired.
//
// Errors: fault.Unavailable.
func (s *Files) List(ctx context.Context, account, after string, limit int, now time.Time) (files []file.File,
	next string, err error) {
	spread, err := s.everSpread(ctx, account)
	if err != nil {
		return nil, "", storeError("list files", err)
	}
	p := s.pagesOf(s.partitions(account, spread), filePrefix, after, limit)
	for walked := 0; ; {
		found, err := p.next(ctx)
		if err != nil {
			return nil, "", storeError("list files", err)
		}
		for i, f := range found {
			if !f.Expired(now) {
				files = append(files, f)
			}
			if len(files) == limit && (i < len(found)-1 || p.more()) {
				return files, f.ID, nil
			}
		}
		if !p.more() {
			return files, "", nil
		}
		if walked += len(found); walked >= max(walk, limit) {
			return files, found[len(found)-1].ID, nil
		}
	}
}

// FindMD5 returns an account's newest file with the MD5 in lower-case hex. It is one
// consistent read of entries, which are written and removed with their files, or two of a
// spread account, and more if files have expired.
//
// Errors: fault.NotFound; fault.Unavailable.
func (s *Files) FindMD5(ctx context.Context, account, md5 string, now time.Time) (file.File, error) {
	spread, err := s.everSpread(ctx, account)
	if err != nil {
		return file.File{}, storeError("find a file by its MD5", err)
	}
	partitions := []string{account}
	if spread {
		partitions = append(partitions, s.placeOf(account, md5, true).partition())
	}
	p := s.pagesOf(partitions, md5Prefix+md5+"/", "", firstMatches)
	for {
		found, err := p.next(ctx)
		if err != nil {
			return file.File{}, storeError("find a file by its MD5", err)
		}
		for _, f := range found {
			if !f.Expired(now) {
				return f, nil
			}
		}
		if !p.more() {
			return file.File{}, file.ErrNotFound
		}
	}
}

// pages reads items of an account whose ids have a prefix, from the last to the
// first: those of several partitions in one order.
type pages struct {
	files      *Files
	partitions []*partitionPages
	prefix     string
}

// partitionPages are the pages of one partition.
type partitionPages struct {
	name string
	// size is how many items the next call reads. It doubles with each call, so that
	// many expired items take few calls.
	size int
	// start is the item before the next page, and ended says that there is none.
	start item
	ended bool
	// read are items that were read and not returned.
	read []file.File
}

// pagesOf returns the pages of partitions, beginning after the file with the id, of which about
// so many items are wanted.
func (s *Files) pagesOf(partitions []string, prefix, after string, size int) *pages {
	p := &pages{files: s, prefix: prefix}
	if n := len(partitions); n > 2 {
		// Twice the part of each, because they differ.
		size = max(unitFiles, 2*size/n)
	}
	for _, name := range partitions {
		of := &partitionPages{name: name, size: size}
		if after != "" {
			of.start = fileKey(name, after)
		}
		p.partitions = append(p.partitions, of)
	}
	return p
}

// more reports whether there may be another page.
func (p *pages) more() bool {
	return slices.ContainsFunc(p.partitions, func(of *partitionPages) bool { return !of.ended || len(of.read) > 0 })
}

// next reads a page. It is empty only when it is the last.
func (p *pages) next(ctx context.Context) ([]file.File, error) {
	reading, ctx := errgroup.WithContext(ctx)
	for _, of := range p.partitions {
		reading.Go(func() error {
			for len(of.read) == 0 && !of.ended {
				if err := p.read(ctx, of); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	var page []file.File
	for {
		newest := slices.MaxFunc(p.partitions, func(a, b *partitionPages) int { return cmp.Compare(a.newest(), b.newest()) })
		if len(newest.read) == 0 {
			return page, nil // all have ended
		}
		page, newest.read = append(page, newest.read[0]), newest.read[1:]
		if len(newest.read) == 0 && !newest.ended {
			return page, nil // others of it may belong before those that are left
		}
	}
}

// newest returns the id of the first item that was not returned.
func (of *partitionPages) newest() string {
	if len(of.read) == 0 {
		return ""
	}
	return of.read[0].ID
}

func (p *pages) read(ctx context.Context, of *partitionPages) error {
	got, err := p.files.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &p.files.table, ConsistentRead: aws.Bool(true), ScanIndexForward: aws.Bool(false),
		Limit: aws.Int32(int32(min(of.size, longestPage))), ExclusiveStartKey: of.start,
		KeyConditionExpression:    aws.String("account = :account AND begins_with(id, :prefix)"),
		ExpressionAttributeValues: item{":account": text(of.name), ":prefix": text(p.prefix)},
	})
	if err != nil {
		return err
	}
	of.size, of.start = min(2*of.size, longestPage), got.LastEvaluatedKey
	of.ended = of.start == nil
	for _, i := range got.Items {
		f, err := readFile(i)
		if err != nil {
			return err
		}
		of.read = append(of.read, f)
	}
	return nil
}
