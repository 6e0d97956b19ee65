package api

import (
	"errors"
	"fmt"
	"io"
	"time"

	"cutroom/shared/domain/fault"
)

// A form's other fields may take up this many bytes (docs/contract/errors.md#too-large).
const formAllowance = 1 << 20

// checkEvery is how often the sender's credential is checked while its body arrives.
const checkEvery = time.Second

func (s *service) maxBody() int64 { return s.MaxUpload + formAllowance }

// LargeUploads explains how to send large files (docs/contract/media.md#large-uploads).
const LargeUploads = "To send a large file, POST its filename, mime_type, size_bytes and md5 as JSON to /v1/files, " +
	"upload the file to the signed URL in the response, and use its id."

func (s *service) errBodyTooLarge() error {
	return fault.New(fault.TooLarge, "The request body is larger than %d bytes. %s", s.maxBody(), LargeUploads)
}

type bodyError struct{ err error }

func (e *bodyError) Error() string { return fmt.Sprintf("read the body: %v", e.err) }
func (e *bodyError) Unwrap() error { return e.err }

// body reads a request body up to a limit. It keeps the error of a failed read, because readers may replace it.
type body struct {
	source io.Reader
	// left is how much of the limit remains, in bytes. Reading more fails with tooLarge.
	left     int64
	tooLarge error
	// check verifies the sender at intervals of checkEvery and after errors. It may be nil.
	check   func() error
	checked time.Time
	failure error
}

func (b *body) Read(p []byte) (int, error) {
	if b.failure != nil {
		return 0, b.failure
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one extra byte shows whether the body ends here or is too long
	}
	n, err := b.source.Read(p)
	b.left -= int64(n)
	// Report a revoked key even if the body has stalled.
	if failed := err != nil && !errors.Is(err, io.EOF); b.check != nil && (failed || time.Since(b.checked) >= checkEvery) {
		b.checked = time.Now()
		if b.failure = b.check(); b.failure != nil {
			return 0, b.failure
		}
	}
	switch {
	case b.left < 0:
		b.failure = b.tooLarge
	case err != nil && !errors.Is(err, io.EOF):
		b.failure = &bodyError{err}
	default:
		return n, err
	}
	return 0, b.failure
}
