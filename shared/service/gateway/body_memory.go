package gateway

import (
	"context"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"cutroom/shared/service/gateway/apierror"
)

const (
	// DefaultBodyMemory is how much memory the bodies of all requests and large
	// answers may hold together, in bytes, unless it is set.
	DefaultBodyMemory = 256 << 20
	// DefaultBodyWait is how long a request waits for memory, unless it is set.
	DefaultBodyWait = 5 * time.Second
	// freeBody is how much every body may hold uncounted, in bytes: its
	// connection holds as much.
	freeBody = 16 << 10
	// returnedPeak is from when on the memory of bodies goes back to the system
	// as soon as none is held, in bytes: by itself it stays for minutes.
	returnedPeak = 32 << 20
)

// bodyMemory is the memory that the bodies of requests and large answers may hold
// together. An account may hold half of it at most, so that one account cannot
// take it all. Calls of batches may hold a quarter, which counts for no account; they
// wait for none, and are given up when a live call needs what they hold.
type bodyMemory struct {
	total, perAccount, forLines int64
	wait                        time.Duration

	mu       sync.Mutex
	held     int64
	accounts map[string]int64
	// peak is the most that was held since nothing was.
	peak int64
	// lines are the calls of batches that hold memory, and lineHeld is how much.
	lines    []*line
	lineHeld int64
	// waiting is how many requests wait for memory. freed is closed when memory
	// was released while any waited.
	waiting int
	freed   chan struct{}
}

// newBodyMemory returns a memory of total bytes, or of what the two largest requests
// need if that is more.
func newBodyMemory(total int64, wait time.Duration) *bodyMemory {
	if total == 0 {
		total = DefaultBodyMemory
	}
	if wait == 0 {
		wait = DefaultBodyWait
	}
	// A body that grows is held twice while it is copied.
	total = max(total, 4*(MaxBody+1))
	return &bodyMemory{
		total: total, perAccount: total / 2, forLines: total / 4, wait: wait,
		accounts: map[string]int64{}, freed: make(chan struct{}),
	}
}

// reservation is what one request holds of the memory. The zero value holds
// nothing and is never asked to; one goroutine uses it.
type reservation struct {
	memory  *bodyMemory
	account string
	// line is set for a call of a batch.
	line *line
	held int64
	// until is when this request stops waiting, zero before it has waited.
	until time.Time
}

// acquire reserves memory. A live call waits while there is too little. The error
// tells the caller when to try again.
func (r *reservation) acquire(ctx context.Context, bytes int64) *apierror.Error {
	b := r.memory
	for {
		b.mu.Lock()
		own := b.accounts[r.account]+bytes > b.perAccount && r.line == nil
		if !own && b.fits(r.line, bytes) {
			b.add(r, bytes)
			b.mu.Unlock()
			return nil
		}
		if r.line != nil {
			b.mu.Unlock()
			return tooMuchInFlight(false)
		}
		if !own {
			b.makeRoom(bytes)
		}
		freed := b.freed
		b.waiting++
		b.mu.Unlock()
		ok := r.waitFor(ctx, freed)
		b.mu.Lock()
		b.waiting--
		b.mu.Unlock()
		if !ok {
			return tooMuchInFlight(own)
		}
	}
}

// fits reports whether there is so much left, for a call of a batch or, by nil, for a
// live one. A call of a batch that is the only one with memory may have more than the
// quarter. The lock is held.
func (b *bodyMemory) fits(l *line, bytes int64) bool {
	if b.held+bytes > b.total {
		return false
	}
	return l == nil || b.lineHeld+bytes <= b.forLines || b.lineHeld == l.held
}

// makeRoom has as many calls of batches given up as hold what a live call lacks. The
// lock is held.
func (b *bodyMemory) makeRoom(bytes int64) {
	missing := b.held + bytes - b.total
	for _, l := range b.lines {
		if missing <= 0 {
			return
		}
		missing -= l.held
		l.yield()
	}
}

// add counts what a reservation takes, or gives back if it is negative. The lock is
// held.
func (b *bodyMemory) add(r *reservation, bytes int64) {
	r.held += bytes
	b.held += bytes
	b.peak = max(b.peak, b.held)
	if l := r.line; l != nil {
		if l.held == 0 {
			b.lines = append(b.lines, l)
		}
		l.held += bytes
		b.lineHeld += bytes
		if l.held == 0 {
			b.lines = slices.DeleteFunc(b.lines, func(other *line) bool { return other == l })
		}
		return
	}
	if b.accounts[r.account] += bytes; b.accounts[r.account] == 0 {
		delete(b.accounts, r.account)
	}
}

// waitFor waits until memory was released, and reports whether that was in
// time.
func (r *reservation) waitFor(ctx context.Context, freed <-chan struct{}) (ok bool) {
	if r.until.IsZero() {
		r.until = time.Now().Add(r.memory.wait)
	}
	timer := time.NewTimer(time.Until(r.until))
	defer timer.Stop()
	select {
	case <-freed:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// release frees memory.
func (r *reservation) release(bytes int64) {
	if bytes == 0 {
		return
	}
	b := r.memory
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(r, -bytes)
	if b.held == 0 {
		if b.peak > returnedPeak {
			go debug.FreeOSMemory()
		}
		b.peak = 0
	}
	if b.waiting > 0 {
		close(b.freed)
		b.freed = make(chan struct{})
	}
}

// releaseAll returns all that the request holds.
func (r *reservation) releaseAll() { r.release(r.held) }

// tooMuchInFlight is the answer to a request for which there was no memory.
func tooMuchInFlight(own bool) *apierror.Error {
	e := &apierror.Error{
		Status: http.StatusTooManyRequests, Type: apierror.RateLimited, Code: apierror.RateLimitExceeded,
		RetryAfter: DefaultBodyWait,
		Message:    "The gateway holds all the requests that it has memory for.",
	}
	if own {
		e.Message = "The account has more bytes of requests under way than it may."
	}
	return e
}
