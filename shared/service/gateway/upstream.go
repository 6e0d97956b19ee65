package gateway

import (
	"net/url"
	"sync"
	"time"

	"cutroom/shared/domain/catalog"
)

// longestRest bounds how long an upstream is left alone on its own word.
const longestRest = time.Minute

// upstream is a model server, with how it does. It outlives the catalog that
// named it for as long as the next one names the same.
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
	// restUntil is when the upstream wants to be called again.
	restUntil time.Time
	breaker   breaker
}

// lease is the right to make one call of an upstream; its end is told by
// release.
type lease struct {
	*upstream
	probe bool
}

// obstacle says why an upstream cannot be called now.
type obstacle int

const (
	none obstacle = iota
	// full upstreams have as many calls as they may.
	full
	// resting upstreams have asked to be called later.
	resting
	// broken upstreams have failed too often of late.
	broken
)

// setLimit changes how many calls there may be at once.
func (u *upstream) setLimit(limit int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit = limit
}

// check says whether a call may begin now, and if not, why and for how long.
func (u *upstream) check(now time.Time) (obstacle, time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.obstacle(now)
}

func (u *upstream) obstacle(now time.Time) (obstacle, time.Duration) {
	switch {
	case !u.breaker.wouldAdmit(now):
		return broken, max(u.breaker.until.Sub(now), time.Second)
	case now.Before(u.restUntil):
		return resting, u.restUntil.Sub(now)
	case u.limit > 0 && u.inFlight >= u.limit:
		return full, time.Second
	}
	return none, 0
}

// take begins a call; ok is false when none may begin any more.
func (u *upstream) take(now time.Time) (l lease, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if why, _ := u.obstacle(now); why != none {
		return lease{}, false
	}
	u.inFlight++
	return lease{u, u.breaker.admit()}, true
}

// release ends the call. An upstream that was overloaded is left alone for as
// long as it has asked for.
func (l lease) release(outcome Outcome, rest time.Duration, now time.Time) {
	u := l.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inFlight--
	switch outcome {
	case Abandoned:
		u.breaker.abandon(l.probe)
	case Failed, TimedOut:
		u.breaker.fail(l.probe, now)
	default:
		u.breaker.succeed(l.probe)
	}
	if rest > 0 {
		u.restUntil = now.Add(min(rest, longestRest))
	}
}

// health gives the state for metrics.
func (u *upstream) health() UpstreamHealth {
	u.mu.Lock()
	defer u.mu.Unlock()
	return UpstreamHealth{Model: u.model, Upstream: u.row.Name, Open: u.breaker.open, InFlight: u.inFlight, Limit: u.limit}
}
