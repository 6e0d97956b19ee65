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

// steadyRate is how fast a large body must come on the whole, in bytes per second:
// 1 Mbit/s. Config.Longest is for bodies that take less time at this rate.
const steadyRate = 128 << 10

// body is a request's body whose sender must keep up a least speed, and be done
// within a longest time.
//
// The sender has time to spare, pace.Grace at first. Time that passes while its
// bytes are waited for uses that up, and every byte gives it the time that one
// takes at the least speed; there is never more to spare than at first. So a
// sender may stand still for a while, or be slow for as long as it is fast enough
// on the whole, and one that sends a byte now and then ends soon.
type body struct {
	io.ReadCloser
	controller *http.ResponseController
	pace       pace
	// due is when the time to spare is over, end when the longest time is.
	due, end time.Time
	// returned is when the last read did: what the handler does meanwhile is not
	// the sender's time.
	returned time.Time
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

// pace is how fast bodies must come; see Config.
type pace struct {
	slowest int64
	grace   time.Duration
	longest time.Duration
}

// pace gives how fast bodies must come.
func (c Config) pace() pace { return pace{c.Slowest, min(c.Grace, c.Stall), c.Longest} }

// allowed is how long a body of the length may take, which is -1 where it is not
// known.
func (p pace) allowed(length int64) time.Duration {
	return max(p.longest, time.Duration(length/steadyRate)*time.Second)
}

// newBody wraps the body of a request; nil when it has none.
func newBody(r *http.Request, controller *http.ResponseController, pace pace) *body {
	if r.Body == nil || r.Body == http.NoBody {
		// The server watches the connection for its end, which a limit would be.
		controller.SetReadDeadline(time.Time{})
		return nil
	}
	now := time.Now()
	b := &body{
		ReadCloser: r.Body, controller: controller, pace: pace, length: r.ContentLength,
		due: now.Add(pace.grace), end: now.Add(pace.allowed(r.ContentLength)), returned: now,
		expecting: strings.EqualFold(r.Header.Get("Expect"), "100-continue"),
	}
	// The server itself reads what a handler leaves unread, so that the limit
	// stands from the start.
	b.limit()
	return b
}

// limit sets until when the next bytes must come. Where the transport knows no
// time limits the call does nothing.
func (b *body) limit() {
	limit := b.due
	if b.end.Before(limit) {
		limit = b.end
	}
	if !b.until.IsZero() && b.until.Before(limit) {
		limit = b.until
	}
	b.controller.SetReadDeadline(limit)
}

// Read reads from the body. A peer that stalls, is too slow or takes too long
// gives an error that is os.ErrDeadlineExceeded.
func (b *body) Read(p []byte) (int, error) {
	b.expecting = false
	b.due = b.due.Add(time.Since(b.returned))
	b.limit()
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	b.returned = time.Now()
	b.credit(n)
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

// credit gives the sender the time for bytes that have come.
func (b *body) credit(bytes int) {
	b.due = b.due.Add(time.Duration(int64(bytes) * int64(time.Second) / b.pace.slowest))
	if most := b.returned.Add(b.pace.grace); b.due.After(most) {
		b.due = most
	}
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
