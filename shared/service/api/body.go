package api

import (
	"errors"
	"fmt"
	"io"
	"time"

	"cutroom/shared/domain/fault"
)

// formAllowance is what a body may hold beside one file of the largest size
// (docs/contract/errors.md#too-large).
const formAllowance = 1 << 20

// checkEvery is how often it is asked whether who sends a body still may.
const checkEvery = time.Second

// maxBody is how large a request's body may be, in bytes.
func (s *service) maxBody() int64 { return s.MaxUpload + formAllowance }

// LargeUploads says how files arrive that no request can carry
// (docs/contract/media.md#large-uploads). What refuses a request before this
// package sees it, such as API Gateway, says it in its answer too.
const LargeUploads = "Send a large file by a signed URL instead, which POST /v1/files gives for a JSON body with filename, mime_type, size_bytes and md5, and refer to it by its id."

// TooLargeDetail is the detail of a 413 where no limit can be named.
const TooLargeDetail = "The request's body is too large. " + LargeUploads

// errBodyTooLarge is the fault of a body beyond maxBody.
func (s *service) errBodyTooLarge() error {
	return fault.New(fault.TooLarge, "The request's body is larger than %d bytes. %s", s.maxBody(), LargeUploads)
}

// bodyError says that a request's body could not be read.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return fmt.Sprintf("read the body: %v", e.err) }
func (e *bodyError) Unwrap() error { return e.err }

// body is a request's body, bounded. It remembers how it failed, because what
// reads from it may give another error in its place.
type body struct {
	source io.Reader
	// left is how much may still be read, tooLarge what happens beyond.
	left     int64
	tooLarge error
	// check looks again whether the sender may send, every checkEvery while bytes
	// come, and when none do any more; nil does not.
	check   func() error
	checked time.Time
	// failure is nil until reading failed; the end of the body is no failure.
	failure error
}

// Read reads from the body.
//
// Errors: *bodyError; tooLarge; those of check.
func (b *body) Read(p []byte) (int, error) {
	if b.failure != nil {
		return 0, b.failure
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more, to tell a body that ends from one that goes on
	}
	n, err := b.source.Read(p)
	b.left -= int64(n)
	// Why a sender may not send is the better answer to one that stands still, too.
	if stands := err != nil && !errors.Is(err, io.EOF); b.check != nil && (stands || time.Since(b.checked) >= checkEvery) {
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
