package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/upstream"
)

// A caller reads slowly if sends of at least slowSend have taken maxBlocked in total. A quarter of the time between
// sends is subtracted. As long as the caller reads slowly, its call yields its slot, because the upstream may have
// finished long ago.
const (
	slowSend     = 100 * time.Millisecond
	maxBlocked   = 5 * time.Second
	forgivenPart = 4
)

var errSlotTaken = errors.New("another call needed the slot of a stream that is read slowly")

// delay measures how long a caller delays its stream.
type delay struct {
	yield, keep func()
	// timer calls yield during a send.
	timer   *time.Timer
	blocked time.Duration
	yields  bool
	// last is the start of the current send, or the end of the last one.
	last time.Time
}

// begin is called before each send.
func (d *delay) begin() {
	now := time.Now()
	if !d.last.IsZero() {
		d.blocked = max(0, d.blocked-now.Sub(d.last)/forgivenPart)
	}
	d.last = now
	if d.timer == nil {
		d.timer = time.AfterFunc(maxBlocked, d.yield)
	} else {
		d.timer.Reset(max(0, maxBlocked-d.blocked))
	}
}

// end is called after each send.
func (d *delay) end() {
	inTime := d.timer.Stop()
	now := time.Now()
	if took := now.Sub(d.last); !inTime || took >= slowSend {
		d.blocked = min(d.blocked+took, maxBlocked)
	}
	d.last = now
	switch {
	case !inTime || d.blocked >= maxBlocked:
		d.yields = true
		d.yield()
	case d.yields && d.blocked < maxBlocked/2:
		d.yields = false
		d.keep()
	}
}

// yieldIfSlow makes a streaming call yield its slot while its caller reads slowly. Call done after the attempt.
func (c *completion) yieldIfSlow(l upstream.Slot) (done func()) {
	r := c.r
	ctx, cut := context.WithCancelCause(r.Context())
	c.r = r.WithContext(ctx)
	end := func() {
		cut(errSlotTaken)
		_ = c.stream.controller.SetWriteDeadline(time.Now()) // ends the current send, if this is supported
	}
	now := c.gateway.config.Now
	c.stream.delay = &delay{yield: func() { l.Yield(now(), end) }, keep: func() { l.Keep(now()) }}
	return func() {
		c.stream.delay, c.r = nil, r
		cut(nil)
	}
}

func slotTaken() *apierror.Error {
	return &apierror.Error{
		Status: http.StatusTooManyRequests, Type: apierror.RateLimited, Code: apierror.RateLimitExceeded,
		Message: "The stream was read too slowly, and another call needed its place.",
	}
}
