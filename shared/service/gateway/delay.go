package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/upstream"
)

// A caller reads slowly if sends of at least slowSend have taken maxBlocked in total. A quarter of the time between
// sends is subtracted. As long as the caller reads slowly, its call yields its slot, because the upstream may have
// finished long ago. If most streams of an account are read slowly, a new one yields from its first send on.
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
	// last is the start of the current send, or the end of the last one. waited is the sum of all slow sends.
	last   time.Time
	waited time.Duration
}

// begin is called before each send.
func (d *delay) begin() {
	now := time.Now()
	if !d.last.IsZero() {
		d.blocked = max(0, d.blocked-now.Sub(d.last)/forgivenPart)
	}
	d.last = now
	if left := max(0, maxBlocked-d.blocked); d.timer == nil {
		d.timer = time.AfterFunc(left, d.yield)
	} else {
		d.timer.Reset(left)
	}
}

// end is called after each send.
func (d *delay) end() {
	inTime := d.timer.Stop()
	now := time.Now()
	if took := now.Sub(d.last); !inTime || took >= slowSend {
		d.blocked = min(d.blocked+took, maxBlocked)
		d.waited += took
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

// stalls measures for each account which part of its streams' time the callers have delayed.
type stalls struct {
	mu       sync.Mutex
	accounts map[string]stall
}

type stall struct{ waited, total time.Duration }

const (
	// maxStalls limits the number of accounts. stallTime is the length of all streams over which delays are averaged.
	maxStalls = 10_000
	stallTime = time.Minute
	// countedTime is how much of a stream counts, so that a single long one does not decide.
	countedTime = 10 * time.Second
)

func (s *stalls) add(account string, waited, total time.Duration) {
	if total > countedTime {
		waited, total = time.Duration(waited.Seconds()/total.Seconds()*float64(countedTime)), countedTime
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accounts == nil || len(s.accounts) == maxStalls {
		s.accounts = map[string]stall{}
	}
	sum := s.accounts[account]
	if sum.waited, sum.total = sum.waited+waited, sum.total+total; sum.total > stallTime {
		sum.waited, sum.total = sum.waited/2, sum.total/2
	}
	s.accounts[account] = sum
}

// usual reports whether most of the account's streams are read slowly.
func (s *stalls) usual(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.accounts[account]
	return sum.total > stallTime/4 && sum.waited > sum.total/2
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
	d := &delay{yield: func() { l.Yield(now(), end) }, keep: func() { l.Keep(now()) }}
	account, began := c.who.Account(), time.Now()
	if c.gateway.stalls.usual(account) {
		d.blocked = maxBlocked
	}
	c.stream.delay = d
	return func() {
		c.gateway.stalls.add(account, d.waited, time.Since(began))
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
