package api

import (
	"errors"
	"fmt"
	"io"
	"time"

	"cutroom/shared/domain/fault"
)

// formAllowance is how many bytes a form may hold beside one file of the largest
// size (docs/contract/errors.md#too-large).
const formAllowance = 1 << 20

// checkEvery is how often a sender's credential is checked again while its body
// arrives.
const checkEvery = time.Second

// maxBody returns the size limit of a request's body, in bytes.
func (s *service) maxBody() int64 { return s.MaxUpload + formAllowance }

// LargeUploads tells clients how to send a file that is too large for a request
// (docs/contract/media.md#large-uploads). Whatever refuses a request before this
// package sees it, such as API Gateway, includes it too.
const LargeUploads = "Send a large file by a signed URL instead, which POST /v1/files gives for a JSON body with " +
	"filename, mime_type, size_bytes and md5, and refer to it by its id."

// errBodyTooLarge returns the fault for a body larger than maxBody.
func (s *service) errBodyTooLarge() error {
	return fault.New(fault.TooLarge, "The request's body is larger than %d bytes. %s", s.maxBody(), LargeUploads)
}

// bodyError wraps an error of reading a request's body.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return fmt.Sprintf("read the body: %v", e.err) }
func (e *bodyError) Unwrap() error { return e.err }

// body reads a request's body up to a limit. It remembers how reading failed,
// because its reader may replace the error by its own.
type body struct {
	source io.Reader
	// left is how many more bytes may be read, tooLarge the error after that.
	left     int64
	tooLarge error
	// check checks again whether the sender may send: every checkEvery while bytes
	// arrive, and when reading fails. It may be nil.
	check   func() error
	checked time.Time
	// failure is the error that ended reading; io.EOF is not recorded.
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
		p = p[:b.left+1] // one byte more tells a body that is too long from one that ends here
	}
	n, err := b.source.Read(p)
	b.left -= int64(n)
	// A sender whose key was revoked is told so, even if its body has stalled as
	// well.
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
