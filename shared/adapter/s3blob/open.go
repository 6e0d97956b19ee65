package s3blob

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"cutroom/shared/domain/blob"
)

// Open streams the bytes. The context must stay valid until the last read.
func (s *Store) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, fmt.Errorf("s3: open at the negative offset %d", offset)
	}
	if length == 0 {
		// HTTP has no empty ranges, so only check that the blob exists.
		_, err := s.head(ctx, name)
		return nothing(), err
	}
	if err := blob.CheckName(name); err != nil {
		return nil, err
	}
	input := &s3.GetObjectInput{Bucket: &s.bucket, Key: s.key(name)}
	last := offset + length - 1
	switch {
	case length > 0 && last >= offset:
		input.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, last))
	case offset > 0:
		input.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	object, err := s.client.GetObject(ctx, input)
	if status(err) == http.StatusRequestedRangeNotSatisfiable {
		return nothing(), nil
	}
	if err != nil {
		return nil, callError("open", err)
	}
	return object.Body, nil
}

func nothing() io.ReadCloser { return io.NopCloser(bytes.NewReader(nil)) }
