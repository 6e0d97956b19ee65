// Package s3blob keeps blobs as objects of one S3 bucket. A blob's name is its key, so the layout
// is nearly the same as on one machine: "files/FILE" and "jobs/JOB/...", or "files/NN/FILE" and
// "jobs/NN/JOB/..." with two random digits of the id, so that S3 can split busy prefixes.
//
// # Bucket requirements
//
// The role that uses a [Store] needs s3:GetObject, s3:PutObject, s3:AbortMultipartUpload and, if it deletes,
// s3:DeleteObject on the objects (a prefix is enough), and s3:ListBucket on the bucket. Without s3:ListBucket, S3
// returns 403 for an object that does not exist, and a missing blob would look like a failure. A role that signs
// uploads needs s3:PutObject, because a signature permits only what its signer may do.
//
// Encryption must be the bucket's default (SSE-S3). With other keys an entity tag is not an MD5, and [Store.Arrival]
// must read all bytes of an upload to compute it. A lifecycle rule must abort incomplete multipart uploads after one
// day: a process that is killed during an upload leaves parts, which cost money and appear in no list. For uploads
// from browsers the bucket's CORS rules must allow PUT with the headers that [Store.Sign] requires.
//
// # Costs
//
// One request stores a blob of up to 8 MiB. A larger blob takes one request per 8 MiB and two more, so 5 GB take 600.
// While one part is read, two are sent, so a Put needs at most 24 MiB of memory: a function with 128 MB is enough.
//
// Each part has a CRC-32, so S3 rejects bytes that changed in transit. This package does not use
// the SDK's transfer manager, because it wraps the reader's error, and aborts an upload with the
// context that has just ended, which leaves the parts in the bucket.
package s3blob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/awsclient"
)

const (
	// S3 may copy gigabytes, or assemble them from parts, before it responds.
	longestWait = 40 * time.Second
	// callTime is the timeout for a request with its retries. Sending a part takes 35 s at 2 Mbit/s.
	callTime = 2 * time.Minute
	// Copying 5 GB takes about a minute.
	copyTime = 5 * time.Minute
	// abortTime is the timeout for deleting a failed upload's parts.
	abortTime = 10 * time.Second
)

type Store struct {
	client *s3.Client
	bucket string
	prefix string    // of every key, "" or with a slash at its end
	parts  sync.Pool // holds *[partSize]byte
}

var _ blob.Store = (*Store)(nil)

func New(config aws.Config, bucket string) *Store {
	config.HTTPClient = awsclient.HTTPClient(config, longestWait)
	return &Store{
		client: s3.NewFromConfig(config, func(o *s3.Options) {
			// A retry is harmless, because it stores the same bytes or changes nothing.
			o.Retryer = awsclient.Retryer()
			// Use path style, because a custom endpoint does not have a host name per bucket.
			o.UsePathStyle = o.BaseEndpoint != nil
		}),
		bucket: bucket,
		parts:  sync.Pool{New: func() any { return new([partSize]byte) }},
	}
}

// NewBelow returns a store of the blobs below prefix + "/".
func NewBelow(config aws.Config, bucket, prefix string) *Store {
	s := New(config, bucket)
	s.prefix = strings.TrimPrefix(prefix+"/", "/")
	return s
}

func (s *Store) key(name string) *string { return aws.String(s.prefix + name) }

func (s *Store) Head(ctx context.Context, name string) (blob.Info, error) {
	head, err := s.head(ctx, name)
	if err != nil {
		return blob.Info{}, err
	}
	return blob.Info{Size: aws.ToInt64(head.ContentLength), StoredAt: aws.ToTime(head.LastModified)}, nil
}

func (s *Store) head(ctx context.Context, name string) (*s3.HeadObjectOutput, error) {
	if err := blob.CheckName(name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.key(name)})
	return head, callError("head", err)
}

func (s *Store) Copy(ctx context.Context, from, to string) error {
	if err := errors.Join(blob.CheckName(from), blob.CheckName(to)); err != nil {
		return err
	}
	if from == to {
		// S3 rejects a copy that changes nothing, so only check that the blob exists.
		_, err := s.head(ctx, from)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	_, err := s.client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: &s.bucket, Key: s.key(to),
		// Names need no escaping (see blob.CheckName).
		CopySource: aws.String(s.bucket + "/" + *s.key(from)),
	})
	return callError("copy", err)
}

func (s *Store) Delete(ctx context.Context, name string) error {
	if err := blob.CheckName(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.key(name)})
	return callError("delete", err)
}

func callError(what string, err error) error {
	if err == nil {
		return nil
	}
	switch status(err) {
	case http.StatusNotFound:
		// A missing bucket is a fault of the deployment.
		var answer smithy.APIError
		if !errors.As(err, &answer) || answer.ErrorCode() != "NoSuchBucket" {
			return blob.NotFound(err)
		}
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		busy := fault.Wrap(err, fault.Unavailable, "The storage is busy. Try again.")
		busy.RetryAfter = time.Second
		return busy
	}
	return fmt.Errorf("s3: %s: %w", what, err)
}

func status(err error) int {
	var refused *awshttp.ResponseError
	if errors.As(err, &refused) {
		return refused.HTTPStatusCode()
	}
	return 0
}
