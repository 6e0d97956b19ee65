package s3blob

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/blob"
)

const listTime = time.Minute

// List skips objects whose names are not valid blob names.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Entry, error] {
	return func(yield func(blob.Entry, error) bool) {
		if prefix = strings.TrimSuffix(prefix, "/"); prefix != "" {
			prefix += "/"
		}
		pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.key(prefix)})
		for pages.HasMorePages() {
			page, err := s.listed(ctx, pages)
			if err != nil {
				yield(blob.Entry{}, callError("list", err))
				return
			}
			for _, object := range page.Contents {
				entry := blob.Entry{Name: strings.TrimPrefix(aws.ToString(object.Key), s.prefix), Info: blob.Info{
					Size: aws.ToInt64(object.Size), StoredAt: aws.ToTime(object.LastModified),
				}}
				if blob.CheckName(entry.Name) == nil && !yield(entry, nil) {
					return
				}
			}
		}
	}
}

func (s *Store) listed(ctx context.Context, pages *s3.ListObjectsV2Paginator) (*s3.ListObjectsV2Output, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	return pages.NextPage(ctx)
}

const deletesAtOnce = 8

func (s *Store) DeleteAll(ctx context.Context, prefix string) error {
	deleting, ctx := errgroup.WithContext(ctx)
	deleting.SetLimit(deletesAtOnce)
	for entry, err := range s.List(ctx, prefix) {
		deleting.Go(func() error {
			if err != nil {
				return err
			}
			return s.Delete(ctx, entry.Name)
		})
	}
	return deleting.Wait()
}
