package s3blob

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"cutroom/shared/domain/file"
)

// Signer signs uploads that go straight to the bucket (docs/contract/media.md#large-uploads).
type Signer struct {
	store *Store
	now   func() time.Time
}

// NewSigner takes the clock on which the files' times are based.
func NewSigner(store *Store, now func() time.Time) *Signer { return &Signer{store, now} }

// At returns a signer whose URLs use another S3 address. The signature covers the host, so the host
// cannot be replaced later. If url is empty, At returns g.
func (g *Signer) At(url string) *Signer {
	if url == "" {
		return g
	}
	client := s3.New(g.store.client.Options(), func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle = &url, true
	})
	return &Signer{&Store{client: client, bucket: g.store.bucket}, g.now}
}

// Sign returns the request that uploads f's bytes. The upload must start before f.SignedUntil, or earlier if the
// signing credentials expire earlier. S3 checks the announced size and MD5, and accepts the bytes only once. A second
// upload gets 412.
func (g *Signer) Sign(ctx context.Context, f file.File) (file.SignedUpload, error) {
	sum, err := hex.DecodeString(f.MD5)
	if err != nil || len(sum) != md5.Size {
		return file.SignedUpload{}, fmt.Errorf("s3: sign %s: %q is not an MD5", f.ID, f.MD5)
	}
	presigner := s3.NewPresignClient(g.store.client, s3.WithPresignClientFromClientOptions(func(o *s3.Options) {
		// The SDK does not have the bytes, so it cannot compute a checksum. Content-MD5 covers them.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	}), s3.WithPresignExpires(f.SignedUntil().Sub(g.now())))
	request, err := presigner.PresignPutObject(ctx, &s3.PutObjectInput{
		Bucket: &g.store.bucket, Key: g.store.key(f.Blob),
		ContentLength: &f.Size, ContentMD5: aws.String(base64.StdEncoding.EncodeToString(sum)),
		IfNoneMatch: aws.String("*"),
	})
	if err != nil {
		return file.SignedUpload{}, fmt.Errorf("s3: sign %s: %w", f.ID, err)
	}
	headers := map[string]string{}
	for name := range request.SignedHeader {
		// Omit the two headers that every HTTP client sets and that browsers do not allow pages to set.
		if !strings.EqualFold(name, "Host") && !strings.EqualFold(name, "Content-Length") {
			headers[name] = request.SignedHeader.Get(name)
		}
	}
	return file.SignedUpload{URL: request.URL, Headers: headers, ExpiresAt: f.SignedUntil()}, nil
}

// Arrival returns the size and MD5 of an uploaded blob. It reads the bytes only if the entity tag is not their MD5.
//
// Errors: fault.NotFound if nothing has arrived.
func (s *Store) Arrival(ctx context.Context, name string) (file.Arrival, error) {
	head, err := s.head(ctx, name)
	if err != nil {
		return file.Arrival{}, err
	}
	a := file.Arrival{Size: aws.ToInt64(head.ContentLength), MD5: strings.Trim(aws.ToString(head.ETag), `"`)}
	ownKey := head.ServerSideEncryption == "" || head.ServerSideEncryption == types.ServerSideEncryptionAes256
	if sum, err := hex.DecodeString(a.MD5); ownKey && err == nil && len(sum) == md5.Size {
		return a, nil
	}
	a.MD5, err = s.digest(ctx, name)
	return a, err
}

func (s *Store) digest(ctx context.Context, name string) (sum string, err error) {
	r, err := s.Open(ctx, name, 0, -1)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	hash := md5.New()
	if _, err := io.Copy(hash, r); err != nil {
		return "", fmt.Errorf("s3: read %s: %w", name, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
