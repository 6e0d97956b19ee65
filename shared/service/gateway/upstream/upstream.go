package upstream

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"cutroom/shared/domain/catalog"
)

// maxBackoff bounds for how long other upstreams are preferred because an
// upstream asked for it.
const maxBackoff = time.Minute

// unreachableTime is for how long others are preferred to an upstream to which no
// connection could be made.
const unreachableTime = 5 * time.Second

// identity is what the catalog says of an upstream.
type identity struct {
	// queue is its model's.
	queue    *queue
	row      catalog.Upstream
	model    string
	timeouts catalog.Timeouts
	urls     map[catalog.Route]*url.URL
	secret   *cachedSecret
}

// is reports whether the row of another catalog names the same upstream.
func (i *identity) is(row *catalog.Inference, u catalog.Upstream) bool {
	same := i.row
	same.Weight, same.Concurrency = u.Weight, u.Concurrency
	return same == u && i.timeouts == row.Timeouts
}

// upstream is a model server and its state. It outlives the catalog that named
// it while the next one names the same.
type upstream struct {
	identity
	// address is where the upstream is if a name stands for it, which is one of
	// set; otherwise it is empty, and the URL says it.
	address   string
	set       *replicas
	transport transport
	// seed stands for the upstream in the choice by affinity.
	seed uint64

	mu       sync.Mutex
	limit    int
	inFlight int
	// yielding are the calls in flight that end if another needs their place.
	yielding []*seat
	usual    average
	// retryAt is when the upstream wants to be called again. What it tells one
	// caller need not be true for another, so it is called earlier if there is
	// no other upstream.
	retryAt time.Time
	breaker breaker
}

// Lease is the right to make one call to an upstream; Release ends it.
type Lease struct {
	upstream *upstream
	// account is the caller's account.
	account string
	probe   bool
	// seat is that of a call that yields, nil for others.
	seat *seat
}

// seat is the place of a call that ends if another needs it.
type seat struct {
	yield func()
	// given reports whether another call has it.
	given bool
}

// Name is the upstream's name, for logs and metrics.
func (l Lease) Name() string { return l.upstream.row.Name }

// Address is the upstream's address, if a name of the catalog stands for it.
func (l Lease) Address() string { return l.upstream.address }

// Model is what the upstream calls the model.
func (l Lease) Model() string { return l.upstream.row.Model }

// Secret returns the upstream's key, empty if it needs none.
func (l Lease) Secret(ctx context.Context) (string, error) { return l.upstream.secret.get(ctx) }

// Call sends a request and returns the head of the answer. The end of the context
// ends the call, even while the body of the answer is read.
//
// Errors: ErrSilent; a net.Error with Timeout if the connection was not made in
// time; others if the upstream could not be reached, or its answer is not HTTP.
func (l Lease) Call(ctx context.Context, r Request) (Reply, error) {
	r.KeyHeader, r.Version = l.upstream.row.KeyHeader, l.upstream.row.Version
	return l.upstream.transport.call(ctx, l.upstream.urls[r.Route], r)
}

// obstacle says why an upstream cannot be called now.
type obstacle int

const (
	none obstacle = iota
	// full upstreams have as many calls as they may have.
	full
	// tripped upstreams have failed too often lately.
	tripped
)

// setLimit sets how many calls may be made at once.
func (u *upstream) setLimit(limit int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit = limit
}

// load is what a choice among upstreams depends on.
type load struct {
	inFlight int
	// usual is how many calls it had lately, on average.
	usual float64
	// backsOff reports whether the upstream has asked to be called later.
	backsOff bool
	// yields reports whether there is no place but those of calls that yield.
	yields bool
}

// check returns why a call may not begin now, if so, and after how long it may.
func (u *upstream) check(now time.Time, call *Call) (why obstacle, clearIn time.Duration, state load) {
	u.mu.Lock()
	defer u.mu.Unlock()
	why, clearIn = u.obstacle(now, call)
	return why, clearIn, load{u.inFlight, u.usual.at(now, u.inFlight), now.Before(u.retryAt), u.isFull()}
}

// isFull reports whether the upstream has as many calls as it may.
func (u *upstream) isFull() bool { return u.limit > 0 && u.inFlight >= u.limit }

func (u *upstream) obstacle(now time.Time, call *Call) (obstacle, time.Duration) {
	switch {
	case !u.breaker.wouldAdmit(now, call.Account):
		return tripped, max(u.breaker.until.Sub(now), time.Second)
	case call.Yield != nil && u.limit > 0 && u.inFlight >= u.limit-u.limit/leftFree:
		return full, time.Second
	case call.Yield == nil && u.isFull() && (len(u.yielding) == 0 || u.inFlight > u.limit):
		return full, time.Second
	}
	return none, 0
}

// leftFree is the part of an upstream's places that calls which yield leave free: one
// of so many.
const leftFree = 4

// take begins a call; ok is false if none may begin now.
func (u *upstream) take(now time.Time, call *Call) (l Lease, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if why, _ := u.obstacle(now, call); why != none {
		return Lease{}, false
	}
	u.usual.note(now, u.inFlight)
	l = Lease{upstream: u, account: call.Account, probe: u.breaker.admit(call.Account)}
	if u.isFull() {
		// The one that began last has the least to lose. Its place is no longer its own.
		last := u.yielding[len(u.yielding)-1]
		u.yielding = u.yielding[:len(u.yielding)-1]
		last.given = true
		last.yield()
	} else {
		u.inFlight++
	}
	if call.Yield != nil {
		l.seat = &seat{yield: call.Yield}
		u.yielding = append(u.yielding, l.seat)
	}
	return l, true
}

// Verdict is what a call says about its upstream.
type Verdict int

const (
	// Answered is an upstream that works, whether or not it took the request.
	Answered Verdict = iota
	// Broken is an upstream that failed.
	Broken
	// Unknown is the verdict of a call that was given up.
	Unknown
)

// Result is how a call ended.
type Result struct {
	Verdict Verdict
	// AnyAccount reports whether it would have ended so for every account, so
	// that the caller's request cannot be the reason.
	AnyAccount bool
	// RetryAfter is how long the upstream asks not to be called; 0 if it does
	// not.
	RetryAfter time.Duration
}

// Release ends the call with its result.
func (l Lease) Release(r Result, now time.Time) {
	u := l.upstream
	u.settle(l, r, now)
	if r.Verdict == Broken && r.AnyAccount && u.set != nil {
		u.set.unreachable(now)
	}
	u.queue.handOut()
}

// settle ends a call with its result.
func (u *upstream) settle(l Lease, r Result, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.usual.note(now, u.inFlight)
	switch {
	case l.seat == nil:
		u.inFlight--
	case !l.seat.given:
		u.inFlight--
		u.yielding = slices.DeleteFunc(u.yielding, func(s *seat) bool { return s == l.seat })
	}
	account := l.account
	if r.AnyAccount {
		account = anyAccount
	}
	switch r.Verdict {
	case Unknown:
		u.breaker.abandon(l.probe)
	case Broken:
		u.breaker.fail(l.probe, account, now)
	default:
		u.breaker.succeed(l.probe)
	}
	if r.Verdict == Broken && r.AnyAccount {
		u.retryAt = now.Add(unreachableTime)
	}
	if r.RetryAfter > 0 {
		u.retryAt = now.Add(min(r.RetryAfter, maxBackoff))
	}
}

// Health is the state of an upstream at one moment.
type Health struct {
	Model, Upstream string
	// Open reports whether the upstream's breaker is open: it has failed too
	// often lately, and gets only a probe now and then.
	Open bool
	// InFlight is how many calls it has, Limit how many it may have; 0 means no
	// limit.
	InFlight, Limit int
	// Found reports whether the upstream is a name in DNS, and Replicas how many
	// servers that stands for; the other numbers are those of all together.
	Found    bool
	Replicas int
}

// health returns the state for metrics.
func (u *upstream) health() Health {
	u.mu.Lock()
	defer u.mu.Unlock()
	return Health{Model: u.model, Upstream: u.row.Name, Open: u.breaker.open, InFlight: u.inFlight, Limit: u.limit}
}
