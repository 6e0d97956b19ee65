package httpserver

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// A client that waits for "100 Continue" may start to send the body even after it got a response.
const continueGrace = time.Second

// unknownGrace limits the grace for a request whose account is not known yet.
const unknownGrace = 5 * time.Second

// If the rest of a request is small, the server waits this long for it before it responds.
const smallRestTime = 100 * time.Millisecond

// A body may always take as long as Config.Longest. It may take longer if it needs longer at this speed, in bytes per
// second (1 Mbit/s).
const steadyRate = 128 << 10

// BodyStalledMessage is the message of a 408 response after os.ErrDeadlineExceeded.
const BodyStalledMessage = "The request body stopped arriving."

// body is a request body with a minimum speed and a maximum time. The sender starts with some spare time, pace.grace.
// Waiting for bytes uses it up. Every byte adds the time that it takes at the minimum speed, but never beyond the
// initial value. So a sender may pause or be slow at times, but a sender that only sends a byte now and then is soon
// cut off.
type body struct {
	io.ReadCloser
	controller *http.ResponseController
	pace       pace
	// grace is pace.grace, or less while the account is unknown.
	grace time.Duration
	// due is when the spare time runs out. end is when the maximum time runs out.
	due, end time.Time
	// returned is when the last read returned. Time spent in the handler does not count.
	returned time.Time
	// until, if not zero, is the deadline for all reads.
	until time.Time
	// length is the declared length, or -1 if unknown.
	length int64
	read   int64
	// expecting means that the client is waiting for "100 Continue", which the first read sends.
	expecting bool
	// ended means that nothing more can be read, because the body is complete or reading failed.
	ended, complete bool
	// arrived means that reads do not wait, so they need no deadline.
	arrived bool
}

// See Config for the fields.
type pace struct {
	slowest int64
	grace   time.Duration
	longest time.Duration
}

func (c *Config) pace() pace { return pace{c.Slowest, min(c.Grace, c.Stall), c.Longest} }

// length is the declared length, or -1 if unknown.
func (p pace) allowed(length int64) time.Duration {
	return max(p.longest, time.Duration(length/steadyRate)*time.Second)
}

// begin returns false if the request has no body.
func (b *body) begin(r *http.Request, now time.Time, controller *http.ResponseController, pace pace) bool {
	if r.Body == nil || r.Body == http.NoBody {
		// The server watches for the end of the connection and would mistake a deadline for it.
		controller.SetReadDeadline(time.Time{})
		return false
	}
	grace := min(pace.grace, unknownGrace)
	*b = body{ReadCloser: r.Body, controller: controller, pace: pace, grace: grace, length: r.ContentLength, returned: now}
	own, ok := r.Body.(*loopBody)
	if b.arrived = ok && own.hasArrived(); b.arrived {
		return true
	}
	b.due, b.end = now.Add(grace), now.Add(pace.allowed(r.ContentLength))
	b.expecting = strings.EqualFold(Field(r.Header, "Expect"), "100-continue")
	// The server itself drains the body after the handler, so the deadline applies from the start.
	b.limit()
	return true
}

// limit sets the deadline for the next bytes, if the transport supports deadlines.
func (b *body) limit() {
	if b.arrived {
		return
	}
	limit := b.due
	if b.end.Before(limit) {
		limit = b.end
	}
	if !b.until.IsZero() && b.until.Before(limit) {
		limit = b.until
	}
	b.controller.SetReadDeadline(limit)
}

// Read returns os.ErrDeadlineExceeded if the peer stalls, is too slow or takes too long.
func (b *body) Read(p []byte) (int, error) {
	b.expecting = false
	if !b.arrived {
		b.due = b.due.Add(time.Since(b.returned))
		b.limit()
	}
	n, err := b.ReadCloser.Read(p)
	if b.read += int64(n); !b.arrived {
		b.returned = time.Now()
		b.credit(n)
	}
	b.ended = b.ended || err != nil
	if err == io.EOF {
		b.complete = true
		if b.arrived {
			return n, err
		}
		// From now on the server watches for the end of the connection. A deadline would end the request while it is
		// served.
		b.controller.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (b *body) credit(bytes int) {
	b.due = b.due.Add(time.Duration(int64(bytes) * int64(time.Second) / b.pace.slowest))
	if most := b.returned.Add(b.grace); b.due.After(most) {
		b.due = most
	}
}

func (b *body) trust() {
	if b == nil || b.ended || b.arrived {
		return
	}
	b.due = b.due.Add(b.pace.grace - b.grace)
	b.grace = b.pace.grace
	b.limit()
}

func (b *body) received() int64 {
	if b == nil {
		return 0
	}
	return b.read
}

func (b *body) drain(bytes int64, within time.Duration) {
	if b.expecting {
		b.until = time.Now().Add(continueGrace)
		if n, err := b.Read(make([]byte, 1)); n == 0 || err != nil {
			return
		}
	}
	b.until = time.Now().Add(within)
	// Ignore errors, because the response has been sent and the connection is closed next.
	_, _ = io.CopyN(io.Discard, b, bytes)
}
