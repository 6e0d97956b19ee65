package gateway

import (
	"net/url"
	"sync"
	"time"

	"cutroom/shared/domain/catalog"
)

// maxBackoff bounds for how long other upstreams are preferred because an
// upstream asked for it.
const maxBackoff = time.Minute

// upstream is a model server and its state. It outlives the catalog that named
// it while the next one names the same.
type upstream struct {
	row       catalog.Upstream
	model     string
	timeouts  catalog.Timeouts
	urls      map[Route]*url.URL
	transport transport
	secret    *cachedSecret

	mu       sync.Mutex
	limit    int
	inFlight int
	// retryAt is when the upstream wants to be called again. What it tells one
	// caller need not be true for another, so it is called earlier if there is
	// no other upstream.
	retryAt time.Time
	breaker breaker
}

// lease is the right to make one call to an upstream; release ends it.
type lease struct {
	upstream *upstream
	// account is the caller's account.
	account string
	probe   bool
}

// obstacle says why an upstream cannot be called now.
type obstacle int

const (
	none obstacle = iota
	// full upstreams have as many calls as they may have.
	full
	// broken upstreams have failed too often lately.
	broken
)

// setLimit sets how many calls may be made at once.
func (u *upstream) setLimit(limit int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit = limit
}

// check returns why a call of the account may not begin now, if so, and after
// how long it may; backsOff reports whether the upstream has asked to be called
// later.
func (u *upstream) check(now time.Time, account string) (why obstacle, clearIn time.Duration, backsOff bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	why, clearIn = u.obstacle(now, account)
	return why, clearIn, now.Before(u.retryAt)
}

func (u *upstream) obstacle(now time.Time, account string) (obstacle, time.Duration) {
	switch {
	case !u.breaker.wouldAdmit(now, account):
		return broken, max(u.breaker.until.Sub(now), time.Second)
	case u.limit > 0 && u.inFlight >= u.limit:
		return full, time.Second
	}
	return none, 0
}

// take begins a call; ok is false if none may begin now.
func (u *upstream) take(now time.Time, account string) (l lease, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if why, _ := u.obstacle(now, account); why != none {
		return lease{}, false
	}
	u.inFlight++
	return lease{u, account, u.breaker.admit(account)}, true
}

// release ends the call with its result.
func (l lease) release(f *failure, now time.Time) {
	u := l.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inFlight--
	account := l.account
	if f.upstreamFault {
		account = anyAccount
	}
	switch {
	case f.outcome == Abandoned:
		u.breaker.abandon(l.probe)
	case f.outcome == Failed, f.outcome == TimedOut, f.unavailable:
		u.breaker.fail(l.probe, account, now)
	default:
		u.breaker.succeed(l.probe)
	}
	if f.retryAfter > 0 {
		u.retryAt = now.Add(min(f.retryAfter, maxBackoff))
	}
}

// health returns the state for metrics.
func (u *upstream) health() UpstreamHealth {
	u.mu.Lock()
	defer u.mu.Unlock()
	return UpstreamHealth{Model: u.model, Upstream: u.row.Name, Open: u.breaker.open, InFlight: u.inFlight, Limit: u.limit}
}
