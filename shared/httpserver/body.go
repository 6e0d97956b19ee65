package httpserver

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// patience is how long a client that asked for "100 Continue" and got an answer
// instead is given to begin sending all the same.
const patience = time.Second

// briefly is how long the small rest of a request is waited for before it is
// answered all the same.
const briefly = 100 * time.Millisecond

// body is a request's body with a time limit on every read.
type body struct {
	io.ReadCloser
	controller *http.ResponseController
	stall      time.Duration
	// until bounds all reads, when it is not zero.
	until time.Time
	// length is what the client declared, -1 when it did not.
	length int64
	read   int64
	// expecting reports that the client waits for "100 Continue", which the
	// first read sends.
	expecting bool
	// ended reports that there is nothing more to be had: the body was read
	// whole, which complete tells, or reading it failed.
	ended, complete bool
}

// newBody wraps the body of a request; nil when it has none.
func newBody(r *http.Request, controller *http.ResponseController, stall time.Duration) *body {
	if r.Body == nil || r.Body == http.NoBody {
		// The server watches the connection for its end, which a limit would be.
		controller.SetReadDeadline(time.Time{})
		return nil
	}
	b := &body{
		ReadCloser: r.Body, controller: controller, stall: stall, length: r.ContentLength,
		expecting: strings.EqualFold(r.Header.Get("Expect"), "100-continue"),
	}
	// The server itself reads what a handler leaves unread, so that the limit
	// stands from the start.
	b.extend()
	return b
}

// extend gives the peer its time for the next bytes. Where the transport knows
// no time limits the call does nothing.
func (b *body) extend() {
	limit := time.Now().Add(b.stall)
	if !b.until.IsZero() && limit.After(b.until) {
		limit = b.until
	}
	b.controller.SetReadDeadline(limit)
}

// Read reads from the body. A peer that stalls gives an error that is
// os.ErrDeadlineExceeded.
func (b *body) Read(p []byte) (int, error) {
	b.expecting = false
	b.extend()
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err != nil {
		b.ended = true
	}
	if errors.Is(err, io.EOF) {
		b.complete = true
		// From here on the server watches the connection for its end; the
		// limit would end the request while it is being worked on.
		b.controller.SetReadDeadline(time.Time{})
	}
	return n, err
}

// received gives the number of bytes that were read.
func (b *body) received() int64 {
	if b == nil {
		return 0
	}
	return b.read
}

// drain reads and drops the rest, within bounds.
func (b *body) drain(bytes int64, within time.Duration) {
	if b.expecting {
		b.until = time.Now().Add(patience)
		if n, err := b.Read(make([]byte, 1)); n == 0 || err != nil {
			return
		}
	}
	b.until = time.Now().Add(within)
	// How it ends does not matter: the answer is out, and the connection is
	// closed next.
	_, _ = io.CopyN(io.Discard, b, bytes)
}
