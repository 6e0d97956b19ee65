package gateway

import (
	"context"
	"math"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/service/gateway/apierror"
)

const (
	// DefaultBodyMemory is the default of Config.BodyMemory, in bytes.
	DefaultBodyMemory = 256 << 20
	DefaultBodyWait   = 5 * time.Second
	// freeBody is the number of bytes per body that are not counted. The body's connection uses about as much.
	freeBody = 16 << 10
	// returnedPeak is the peak memory use, in bytes, above which memory is returned to the system
	// once all bodies are released. By default, Go would keep it for minutes.
	returnedPeak = 32 << 20
)

// bodyMemory is a memory budget for request bodies and large responses. An account may use at most half of it. A
// quarter is reserved for accounts that use at most 1/32. All batch calls together may use a quarter, which does not
// count toward any account. They never wait for memory, and are aborted if a live call needs their memory.
type bodyMemory struct {
	total, perAccount, forBatches int64
	wait                          time.Duration

	mu       sync.Mutex
	held     int64
	accounts map[string]int64
	// peak is the highest value of held since held was last 0.
	peak int64
	// batchCalls lists the batch calls that use memory. batchHeld is their total in bytes.
	batchCalls []*batchCall
	batchHeld  int64
	// waiting counts the requests that wait for memory. freed is closed when memory is released while requests wait.
	waiting int
	freed   chan struct{}

	// decoders lets each account decompress only one large body at a time. computing does the same for work of up to a
	// quarter of a second, such as counting a prompt's tokens. See takeTurn.
	decoders, computing *ratelimit.Turns
}

// newBodyMemory returns a budget of the given size, but at least enough for two maximum-size requests.
func newBodyMemory(total int64, wait time.Duration) *bodyMemory {
	if total == 0 {
		total = DefaultBodyMemory
	}
	if wait == 0 {
		wait = DefaultBodyWait
	}
	// A growing body takes up twice its size while it is being copied.
	total = max(total, 4*(MaxBody+1))
	return &bodyMemory{
		total: total, perAccount: total / 2, forBatches: total / 4, wait: wait,
		accounts: map[string]int64{}, freed: make(chan struct{}), decoders: ratelimit.NewTurns(math.MaxInt, math.MaxInt-1),
		computing: ratelimit.NewTurns(math.MaxInt, math.MaxInt-1),
	}
}

// takeTurn waits until no other call of the account computes. Call release at the end of the work.
func (b *bodyMemory) takeTurn(ctx context.Context, account string) (release func(), apiErr *apierror.Error) {
	waiting, cancel := context.WithTimeout(ctx, b.wait)
	defer cancel()
	if !b.computing.Take(waiting, account) {
		return nil, tooMuchInFlight(true)
	}
	return func() { b.computing.Release(account) }, nil
}

type reservation struct {
	memory  *bodyMemory
	account string
	batch   *batchCall
	held    int64
	// until is when the request stops waiting for memory, or zero before its first wait.
	until time.Time
}

// acquire reserves memory. A live call waits if too little is free. The returned error has a Retry-After.
func (r *reservation) acquire(ctx context.Context, bytes int64) *apierror.Error {
	b := r.memory
	for {
		b.mu.Lock()
		own := b.accounts[r.account]+bytes > b.perAccount && r.batch == nil
		if !own && b.fits(r, bytes) {
			b.add(r, bytes)
			b.mu.Unlock()
			return nil
		}
		if r.batch != nil {
			b.mu.Unlock()
			return tooMuchInFlight(false)
		}
		if !own {
			b.freeFromBatches(bytes)
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

// fits reports whether there is memory for a call. If a batch call is the only one that uses
// memory, it may exceed the quarter for batches. The lock must be held.
func (b *bodyMemory) fits(r *reservation, bytes int64) bool {
	switch l := r.batch; {
	case b.held+bytes > b.total:
		return false
	case l != nil:
		return b.batchHeld+bytes <= b.forBatches || b.batchHeld == l.held
	}
	return b.accounts[r.account]+bytes <= b.total/32 || b.held-b.batchHeld+bytes <= b.total*3/4
}

// freeFromBatches aborts as many batch calls as necessary to free bytes for a live call. The lock must be held.
func (b *bodyMemory) freeFromBatches(bytes int64) {
	missing := b.held + bytes - b.total
	for _, l := range b.batchCalls {
		if missing <= 0 {
			return
		}
		missing -= l.held
		l.yield()
	}
}

func (b *bodyMemory) add(r *reservation, bytes int64) {
	r.held += bytes
	b.held += bytes
	b.peak = max(b.peak, b.held)
	if l := r.batch; l != nil {
		if l.held == 0 {
			b.batchCalls = append(b.batchCalls, l)
		}
		l.held += bytes
		b.batchHeld += bytes
		if l.held == 0 {
			b.batchCalls = slices.DeleteFunc(b.batchCalls, func(other *batchCall) bool { return other == l })
		}
		return
	}
	if b.accounts[r.account] += bytes; b.accounts[r.account] == 0 {
		delete(b.accounts, r.account)
	}
}

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
			go func() {
				runtime.GC() // the pools keep their buffers for one more collection
				debug.FreeOSMemory()
			}()
		}
		b.peak = 0
	}
	if b.waiting > 0 {
		close(b.freed)
		b.freed = make(chan struct{})
	}
}

func (r *reservation) releaseAll() { r.release(r.held) }

func tooMuchInFlight(own bool) *apierror.Error {
	e := &apierror.Error{
		Status: http.StatusTooManyRequests, Type: apierror.RateLimited, Code: apierror.RateLimitExceeded,
		RetryAfter: DefaultBodyWait,
		Message:    "The gateway does not have enough memory for another request at the moment.",
	}
	if own {
		e.Message = "This account's running requests already use all the memory that one account may use."
	}
	return e
}
