package s3blob

import (
	"bytes"
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/blob"
)

const (
	// A blob of up to partSize bytes takes one request. For larger blobs, S3 allows 10,000 parts.
	partSize = 8 << 20
	// partsAtOnce is the number of parts being sent while the next part is read.
	partsAtOnce = 2
)

// Put's last request makes the complete blob visible. Put waits for that request even if the
// context ends, because otherwise its effect would be unknown.
func (s *Store) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if err := blob.CheckName(name); err != nil {
		return 0, err
	}
	part := s.parts.Get().(*[partSize]byte)
	n, err := blob.ReadFull(ctx, r, part[:])
	if err == nil {
		return s.putParts(ctx, name, r, part)
	}
	defer s.parts.Put(part)
	if err != io.EOF {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	_, err = s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: s.key(name), Body: bytes.NewReader(part[:n])})
	if err != nil {
		return 0, callError("put", err)
	}
	return int64(n), nil
}

// putParts uploads a blob in parts. first is the first part, which is full.
func (s *Store) putParts(ctx context.Context, name string, r io.Reader, first *[partSize]byte) (int64, error) {
	u, err := s.begin(ctx, name)
	if err != nil {
		s.parts.Put(first)
		return 0, err
	}
	size, err := u.send(ctx, r, first)
	if err == nil {
		err = u.complete(ctx)
	}
	if err != nil {
		u.abort(ctx)
		return 0, err
	}
	return size, nil
}

type upload struct {
	*Store
	name, id string
	// The goroutine that sends a part sets the part's element of sent.
	sent []*types.CompletedPart
}

func (s *Store) begin(ctx context.Context, name string) (*upload, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	created, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &s.bucket, Key: s.key(name), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
	})
	if err != nil {
		return nil, callError("put", err)
	}
	return &upload{Store: s, name: name, id: aws.ToString(created.UploadId)}, nil
}

func (u *upload) send(ctx context.Context, r io.Reader, part *[partSize]byte) (int64, error) {
	senders, sending := errgroup.WithContext(ctx)
	senders.SetLimit(partsAtOnce)
	n, readErr := partSize, error(nil)
	total := int64(0)
	for n > 0 && (readErr == nil || readErr == io.EOF) {
		total += int64(n)
		sent := &types.CompletedPart{PartNumber: aws.Int32(int32(len(u.sent) + 1))}
		u.sent = append(u.sent, sent)
		full, size := part, n
		senders.Go(func() error {
			defer u.parts.Put(full)
			return u.sendPart(sending, sent, full[:size])
		})
		if readErr != nil {
			break
		}
		part = u.parts.Get().(*[partSize]byte)
		if n, readErr = blob.ReadFull(sending, r, part[:]); n == 0 || readErr != nil && readErr != io.EOF {
			u.parts.Put(part)
		}
	}
	sendErr := senders.Wait()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if sendErr != nil {
		return 0, callError("put", sendErr)
	}
	if readErr != io.EOF {
		return 0, readErr
	}
	return total, nil
}

func (u *upload) sendPart(ctx context.Context, part *types.CompletedPart, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	sent, err := u.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &u.bucket, Key: u.key(u.name), UploadId: &u.id, PartNumber: part.PartNumber,
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc32, Body: bytes.NewReader(content),
	})
	if err != nil {
		return err
	}
	part.ETag, part.ChecksumCRC32 = sent.ETag, sent.ChecksumCRC32
	return nil
}

// complete can be retried after a lost response.
func (u *upload) complete(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	parts := make([]types.CompletedPart, len(u.sent))
	for i, part := range u.sent {
		parts[i] = *part
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	_, err := u.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.bucket, Key: u.key(u.name), UploadId: &u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	return callError("put", err)
}

// abort ignores errors, because the bucket's lifecycle rules delete leftover parts.
func (u *upload) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	_, _ = u.client.AbortMultipartUpload(ctx,
		&s3.AbortMultipartUploadInput{Bucket: &u.bucket, Key: u.key(u.name), UploadId: &u.id})
}
