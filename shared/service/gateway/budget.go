package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// DefaultBodyMemory is how much memory all requests' bodies together may hold,
	// in bytes, where nothing else is set.
	DefaultBodyMemory = 256 << 20
	// DefaultBodyWait is how long a request waits for memory, where nothing else is
	// set.
	DefaultBodyWait = 5 * time.Second
	// freeBody is what every body has without asking, in bytes: a connection holds
	// as much itself.
	freeBody = 16 << 10
)

// budget is the memory that requests' bodies may hold together. An account gets
// half of it at most, so that none can take all.
type budget struct {
	total, share int64
	wait         time.Duration

	mu       sync.Mutex
	held     int64
	accounts map[string]int64
	// waiting is how many wait for memory, and freed is closed when some was given
	// back meanwhile.
	waiting int
	freed   chan struct{}
}

// newBudget makes a budget of so many bytes, at least what two of the greatest
// requests need.
func newBudget(total int64, wait time.Duration) *budget {
	if total == 0 {
		total = DefaultBodyMemory
	}
	if wait == 0 {
		wait = DefaultBodyWait
	}
	// While a body grows it is there twice.
	total = max(total, 4*(MaxBody+1))
	return &budget{total: total, share: total / 2, wait: wait, accounts: map[string]int64{}, freed: make(chan struct{})}
}

// share is what one request holds of the budget. Its zero value without a budget
// holds nothing; one goroutine uses it.
type share struct {
	budget  *budget
	account string
	held    int64
	// until is when the waiting of this request ends, zero before it has waited.
	until time.Time
}

// take takes memory, and waits for it where there is none. An error tells the
// caller to come back.
func (s *share) take(ctx context.Context, bytes int64) *Error {
	b := s.budget
	for {
		b.mu.Lock()
		own := b.accounts[s.account]
		if own+bytes <= b.share && b.held+bytes <= b.total {
			b.accounts[s.account], b.held = own+bytes, b.held+bytes
			s.held += bytes
			b.mu.Unlock()
			return nil
		}
		freed := b.freed
		b.waiting++
		b.mu.Unlock()
		ok := s.waitFor(ctx, freed)
		b.mu.Lock()
		b.waiting--
		b.mu.Unlock()
		if !ok {
			return tooMuchInFlight(own+bytes > b.share)
		}
	}
}

// waitFor waits until memory was given back. ok is false when that takes too
// long.
func (s *share) waitFor(ctx context.Context, freed <-chan struct{}) (ok bool) {
	if s.until.IsZero() {
		s.until = time.Now().Add(s.budget.wait)
	}
	timer := time.NewTimer(time.Until(s.until))
	defer timer.Stop()
	select {
	case <-freed:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// give gives memory back.
func (s *share) give(bytes int64) {
	if bytes == 0 {
		return
	}
	s.held -= bytes
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= bytes
	if b.accounts[s.account] -= bytes; b.accounts[s.account] == 0 {
		delete(b.accounts, s.account)
	}
	if b.waiting > 0 {
		close(b.freed)
		b.freed = make(chan struct{})
	}
}

// free gives back all that the request holds.
func (s *share) free() { s.give(s.held) }

// tooMuchInFlight is the answer to a request that no memory was free for.
func tooMuchInFlight(own bool) *Error {
	e := &Error{
		Status: http.StatusTooManyRequests, Type: RateLimited, Code: RateLimitExceeded, RetryAfter: DefaultBodyWait,
		Message: "The gateway holds all the requests that it has memory for.",
	}
	if own {
		e.Message = "The account has more bytes of requests under way than it may."
	}
	return e
}
