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
	// DefaultBodyMemory is the default of BodyMemory, in bytes.
	DefaultBodyMemory = 256 << 20
	DefaultBodyWait   = 5 * time.Second
	// freeBody is how much every body may hold uncounted, in bytes: its
	// connection holds as much.
	freeBody = 16 << 10
	// returnedPeak is the number of bytes from which the memory of bodies returns to the system as soon
	// as all are released. By default it would stay for minutes.
	returnedPeak = 32 << 20
)

// bodyMemory is a memory budget for the bodies of requests and large answers. An account may hold
// at most half of it. Batch calls may hold a quarter, which counts for no account. They never wait,
// and are abandoned if a live call needs their memory.
type bodyMemory struct {
	total, perAccount, forLines int64
	wait                        time.Duration

	mu       sync.Mutex
	held     int64
	accounts map[string]int64
	// peak is the highest amount since the last time it was 0.
	peak int64
	// lines are the batch calls that hold memory. lineHeld is their sum.
	lines    []*line
	lineHeld int64
	// waiting counts the waiting requests. freed is closed when memory is released while requests wait.
	waiting int
	freed   chan struct{}
}

// newBodyMemory returns a budget of total bytes, or more if the two largest requests need it.
func newBodyMemory(total int64, wait time.Duration) *bodyMemory {
	if total == 0 {
		total = DefaultBodyMemory
	}
	if wait == 0 {
		wait = DefaultBodyWait
	}
	// A growing body is held twice while it is copied.
	total = max(total, 4*(MaxBody+1))
	return &bodyMemory{
		total: total, perAccount: total / 2, forLines: total / 4, wait: wait,
		accounts: map[string]int64{}, freed: make(chan struct{}),
	}
}

// reservation is one request's part of the budget. The zero value is empty and must not be
// extended. Only one goroutine may use it.
type reservation struct {
	memory  *bodyMemory
	account string
	// line is set for a batch call.
	line *line
	held int64
	// until is when this request stops waiting, or zero before its first wait.
	until time.Time
}

// acquire reserves memory. A live call waits if there is too little. The error has a Retry-After.
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

// fits reports whether enough is left for a batch call, or for a live call if l is nil. A batch
// call that is the only one with memory may exceed the quarter. The lock must be held.
func (b *bodyMemory) fits(l *line, bytes int64) bool {
	if b.held+bytes > b.total {
		return false
	}
	return l == nil || b.lineHeld+bytes <= b.forLines || b.lineHeld == l.held
}

// makeRoom abandons as many batch calls as needed for a live call's bytes. The lock must be held.
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

// add changes the size of a reservation. The lock must be held.
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

// waitFor waits for released memory. It returns false if the time is over.
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

func (r *reservation) releaseAll() { r.release(r.held) }

// tooMuchInFlight returns the error for a request without memory.
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
