package upstream

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"cutroom/shared/domain/catalog"
)

// maxBackoff limits how long an upstream that asked for a pause is avoided.
const maxBackoff = time.Minute

// unreachableTime is how long other upstreams are preferred to an unreachable one.
const unreachableTime = 5 * time.Second

// identity is an upstream as the catalog defines it.
type identity struct {
	queue    *queue
	row      catalog.Upstream
	model    string
	quoted   []byte // the upstream's model as JSON
	timeouts catalog.Timeouts
	urls     map[catalog.Route]*url.URL
	secret   *cachedSecret
}

func (i *identity) is(row *catalog.Inference, u catalog.Upstream) bool {
	same := i.row
	same.Weight, same.Concurrency = u.Weight, u.Concurrency
	return same == u && i.timeouts == row.Timeouts
}

// upstream is a model server and its state. It is kept if the next catalog also contains it.
type upstream struct {
	identity
	// address is the upstream's address if it was found through a DNS name, or empty if the URL's host is used.
	address   string
	set       *replicas
	transport transport
	seed      uint64

	mu       sync.Mutex
	limit    int
	inFlight int
	// live is the number of calls that do not yield. accounts also counts the streams of slow callers.
	live     int
	accounts map[string]*calls
	// slow lists the streams with slow callers, which must end if another call needs their slot. yielding lists the
	// batch calls, which must end if a live call does.
	slow, yielding []*seat
	batches        map[string]*batchCalls
	usual          average
	// retryAt is when a requested pause ends. Until then, other upstreams are preferred.
	retryAt time.Time
	breaker breaker
}

// calls counts an account's live calls.
type calls struct {
	// now is the number of running calls. slow of them have slow callers; the recent average does not include these.
	now, slow int
	usual     average
	// cut is when a call last took the slot of a batch call.
	cut time.Time
}

func (c *calls) add(now time.Time, number, slow int) {
	c.usual.note(now, c.now-c.slow, shareTime)
	c.now += number
	c.slow += slow
}

func (c *calls) average(now time.Time) float64 { return c.usual.at(now, c.now-c.slow, shareTime) }

// batchCalls has the number of an account's running batch calls.
type batchCalls struct {
	now   int
	usual average
	// refused is when a call last found no slot, and since when that has been so without a start in between.
	refused, since time.Time
}

func (b *batchCalls) add(now time.Time, number int) {
	b.usual.note(now, b.now, batchTime)
	b.now += number
}

func (b *batchCalls) average(now time.Time) float64 { return b.usual.at(now, b.now, batchTime) }

// Slot permits one call to an upstream. Release must be called after the call.
type Slot struct {
	upstream *upstream
	account  string
	probe    bool
	// seat is nil if the server has no limit and the call does not yield.
	seat *seat
}

// seat is the state of a call that yields its slot or may later do so.
type seat struct {
	account string
	// yield ends the call. It is nil as long as the call does not yield.
	yield func()
	// slow means that the call is a stream with a slow caller, given that another call has been given its slot, and
	// ended that it has ended.
	slow, given, ended bool
}

func (l Slot) Name() string { return l.upstream.row.Name }

// Address returns the upstream's address if it is behind a DNS name, or "".
func (l Slot) Address() string { return l.upstream.address }

// Model returns the upstream's name for the model as JSON, which must not be changed.
func (l Slot) Model() []byte { return l.upstream.quoted }

// ReadsLate reports whether the transport may still read a request after its call has ended.
func (l Slot) ReadsLate() bool {
	_, is := l.upstream.transport.(*stdTransport)
	return is
}

func (l Slot) Secret(ctx context.Context) (string, error) { return l.upstream.secret.get(ctx) }

// Call sends a request and returns the head of the response. The call ends with the context, even
// while the response body is being read.
//
// Errors: ErrSilent; a net.Error with Timeout if the connection was not made in time; others if the
// upstream is unreachable or does not speak HTTP.
func (l Slot) Call(ctx context.Context, r Request) (Reply, error) {
	r.KeyHeader, r.Version = l.upstream.row.KeyHeader, l.upstream.row.Version
	return l.upstream.transport.call(ctx, l.upstream.urls[r.Route], r)
}

type obstacle int

const (
	none obstacle = iota
	full
	tripped
)

func (u *upstream) setLimit(limit int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit = limit
}

// load is the state that the choice of an upstream depends on. usual is set only for calls with an affinity.
type load struct {
	inFlight int
	usual    float64
	backsOff bool
	// yields means that all slots are taken, so a call can start only if another one yields.
	yields bool
}

// check returns the reason why a call may not start now, if any, and the time until it may start.
func (u *upstream) check(now time.Time, call *Call) (why obstacle, clearIn time.Duration, state load) {
	u.mu.Lock()
	defer u.mu.Unlock()
	why, clearIn = u.obstacle(now, call)
	state = load{inFlight: u.inFlight, backsOff: now.Before(u.retryAt), yields: u.isFull()}
	if call.Affinity != 0 {
		state.usual = u.usual.at(now, u.inFlight, loadTime)
	}
	return why, clearIn, state
}

// isFullOfLive is like isFull, but does not count calls that yield.
func (u *upstream) isFullOfLive() bool {
	return u.limit > 0 && u.inFlight-len(u.slow)-len(u.yielding) >= u.limit
}

func (u *upstream) isFull() bool { return u.limit > 0 && u.inFlight >= u.limit }

func (u *upstream) obstacle(now time.Time, call *Call) (obstacle, time.Duration) {
	switch pause := u.breaker.clearIn(now, call.Account); {
	case pause > 0:
		return tripped, max(pause, time.Second)
	case call.Yield != nil && u.limit > 0 && u.refusesBatch(now, call.Account):
		return full, time.Second
	case slices.ContainsFunc(call.waiting, func(a string) bool { return u.isFor(now, a) }):
		return full, time.Second
	case call.Yield == nil && u.limit > 0 && u.refuses(now, call):
		return full, time.Second
	}
	return none, 0
}

// isFor reports whether an account may use more slots than it has, once these are free.
func (u *upstream) isFor(now time.Time, account string) bool {
	return u.breaker.clearIn(now, account) <= 0 && !u.isForOthers(now, account)
}

// refuses reports whether a live call finds no slot.
func (u *upstream) refuses(now time.Time, call *Call) bool {
	return u.isForOthers(now, call.Account) || u.isFull() && u.inFlight-len(u.slow)-u.takeable(now, call) >= u.limit
}

// cutEvery is how often an account's live calls may take the slot of a batch call, unless they are urgent.
const cutEvery = 250 * time.Millisecond

// takeable returns how many slots of batch calls a live call may take. A burst of short calls must not end all batch
// calls.
func (u *upstream) takeable(now time.Time, call *Call) int {
	if own := u.accounts[call.Account]; !call.urgent && own != nil && now.Sub(own.cut) < cutEvery {
		return 0
	}
	return len(u.yielding)
}

// Yielding calls leave 1/leftFree of the slots free. Only servers with at least leftFree slots have reserved slots.
const leftFree = 4

const (
	// wantTime is how long a slot is kept for a batch after a refusal. Batches try again after a second.
	wantTime = 2 * time.Second
	// batchTime is the time over which accounts' running batch calls are averaged.
	batchTime = 30 * time.Second
)

// refusesBatch reports whether an account's batch call finds no slot, and remembers when that was. Accounts that were
// refused a moment ago share the slots with this one. For each of them a slot is kept if it has fewer calls, or if it has
// as many, is waiting, and has used less time. Some accounts make much longer calls than others.
func (u *upstream) refusesBatch(now time.Time, account string) bool {
	own := u.batch(now, account)
	if now.Sub(own.refused) >= wantTime {
		own.since = time.Time{}
	}
	slots, sharing, kept := u.limit-u.limit/leftFree, 1, 0
	for _, other := range u.batches {
		if other == own || now.Sub(other.refused) >= wantTime {
			continue
		}
		sharing++
		waits := !other.since.IsZero() && now.Sub(other.since) >= wantTime
		if other.now < own.now || other.now == own.now && waits && other.average(now) < own.average(now) {
			kept++
		}
	}
	if u.inFlight-len(u.slow)+kept < slots && own.now*sharing < slots { // an account may have its share, rounded up
		return false
	}
	if own.refused = now; own.since.IsZero() {
		own.since = now
	}
	return true
}

// batch returns an account's batch calls, and forgets accounts that have had none for a while.
func (u *upstream) batch(now time.Time, account string) *batchCalls {
	if u.batches[account] == nil {
		maps.DeleteFunc(u.batches, func(_ string, b *batchCalls) bool {
			return b.now == 0 && b.average(now) < 0.01 && now.Sub(b.refused) >= wantTime
		})
		u.batches[account] = &batchCalls{}
	}
	return u.batches[account]
}

// shareTime is the time over which accounts' running calls are averaged.
const shareTime = 10 * time.Second

// isForOthers reports whether the next slot is reserved for other accounts. The last slot is reserved for accounts
// without a running call. An account leaves twice the others' averages free. But it may have its share of the slots, and
// half of them if the others do not use these.
func (u *upstream) isForOthers(now time.Time, account string) bool {
	own := u.accounts[account]
	if own == nil || own.now == 0 || u.limit < leftFree {
		return false
	}
	if u.live >= u.limit-1 {
		return true
	}
	if own.now*len(u.accounts) < u.limit-1 {
		return false // saves time
	}
	var needs []float64
	left := float64(u.limit - 1)
	for _, other := range u.accounts {
		if other != own {
			average := other.average(now)
			needs = append(needs, 2*average)
			left -= average
		}
	}
	return float64(own.now) >= max(share(u.limit-1, needs), min(left, float64(u.limit/2)))
}

// share returns an account's number of slots if the others use at most as many, or fewer according to their needs.
func share(slots int, needs []float64) float64 {
	slices.Sort(needs)
	left := float64(slots)
	for i, need := range needs {
		equal := left / float64(len(needs)-i+1)
		if need >= equal {
			return equal
		}
		left -= need
	}
	return left
}

// addLive counts a live call that starts or ends.
func (u *upstream) addLive(now time.Time, account string, number int) {
	u.account(now, account).add(now, number, 0)
	u.live += number
}

// account returns an account's live calls, and forgets accounts that have made none for a while.
func (u *upstream) account(now time.Time, account string) *calls {
	own := u.accounts[account]
	if own == nil {
		maps.DeleteFunc(u.accounts, func(_ string, c *calls) bool {
			return c.now == 0 && c.average(now) < 0.01
		})
		own = &calls{}
		u.accounts[account] = own
	}
	return own
}

func (u *upstream) uses(now time.Time, account string) use {
	u.mu.Lock()
	defer u.mu.Unlock()
	if own := u.accounts[account]; own != nil {
		return use{own.now, own.average(now)}
	}
	return use{}
}

// take starts a call. ok is false if it may not start now.
func (u *upstream) take(now time.Time, call *Call) (l Slot, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if why, _ := u.obstacle(now, call); why != none {
		return Slot{}, false
	}
	u.usual.note(now, u.inFlight, loadTime)
	l = Slot{upstream: u, account: call.Account, probe: u.breaker.admit(call.Account, now)}
	if call.Yield == nil {
		u.addLive(now, call.Account, 1)
	}
	if u.isFull() {
		from := &u.slow // the upstream has often finished
		if len(*from) == 0 {
			from = &u.yielding
			u.accounts[call.Account].cut = now
		}
		at := ending(*from, call.Account)
		ends := (*from)[at]
		*from = slices.Delete(*from, at, at+1)
		ends.given = true
		ends.yield()
	} else {
		u.inFlight++
	}
	if u.limit > 0 || call.Yield != nil {
		l.seat = &seat{account: call.Account, yield: call.Yield}
	}
	if call.Yield != nil {
		u.yielding = append(u.yielding, l.seat)
		own := u.batch(now, call.Account)
		own.add(now, 1)
		own.since = time.Time{}
	}
	return l, true
}

// ending returns the index of the call that ends for another one of the given account. It belongs to the account with
// the most calls, or of these to the given one. The most recent call loses the least work.
func ending(seats []*seat, account string) (at int) {
	counts, most := map[string]int{}, 0
	for i, s := range seats {
		counts[s.account]++
		if n := counts[s.account]; n > most || n == most && (s.account == account || seats[at].account != account) {
			at, most = i, n
		}
	}
	return at
}

// MayYield reports whether other calls may need the slot, because the upstream has a limit.
func (l Slot) MayYield() bool { return l.seat != nil && l.seat.yield == nil }

// Yield makes a live call end by calling end as soon as another call needs the slot. end must not wait. The call still
// counts for its account. If it has ended or yields already, Yield does nothing.
func (l Slot) Yield(now time.Time, end func()) {
	u := l.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	if l.seat.yield == nil && !l.seat.ended {
		l.seat.yield, l.seat.slow = end, true
		u.slow = append(u.slow, l.seat)
		u.accounts[l.account].add(now, 0, 1)
		u.live--
	}
}

// Keep undoes Yield, unless the call has ended or another call has been given the slot.
func (l Slot) Keep(now time.Time) {
	u := l.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	if l.seat.slow && !l.seat.given && !l.seat.ended {
		u.leave(l.seat)
		l.seat.yield, l.seat.slow = nil, false
		u.accounts[l.account].add(now, 0, -1)
		u.live++
	}
}

// leave removes a call from its list of yielding calls.
func (u *upstream) leave(leaves *seat) {
	from := &u.yielding
	if leaves.slow {
		from = &u.slow
	}
	*from = slices.DeleteFunc(*from, func(s *seat) bool { return s == leaves })
}

type Verdict int

const (
	// Answered means that the upstream works, even if it rejected the request.
	Answered Verdict = iota
	Broken
	Unknown
)

type Result struct {
	Verdict Verdict
	// AnyAccount means that a failure counts for all accounts, because the request is not to blame.
	AnyAccount bool
	RetryAfter time.Duration
}

func (l Slot) Release(r Result, now time.Time) {
	u := l.upstream
	u.settle(l, r, now)
	if r.Verdict == Broken && r.AnyAccount && u.set != nil {
		u.set.unreachable(now)
	}
	u.queue.handOut(r.RetryAfter == 0)
}

func (u *upstream) settle(l Slot, r Result, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.usual.note(now, u.inFlight, loadTime)
	switch {
	case l.seat == nil || l.seat.yield == nil:
		u.inFlight--
		u.addLive(now, l.account, -1)
	case !l.seat.given:
		u.inFlight--
		u.leave(l.seat)
	}
	if l.seat != nil {
		l.seat.ended = true
		switch {
		case l.seat.slow:
			u.accounts[l.account].add(now, -1, -1)
		case l.seat.yield != nil:
			u.batch(now, l.account).add(now, -1)
		}
	}
	account := l.account
	if r.AnyAccount {
		account = anyAccount
	}
	switch r.Verdict {
	case Unknown:
		u.breaker.abandon(l.probe, l.account)
	case Broken:
		u.breaker.fail(l.probe, account, now)
	default:
		u.breaker.succeed(l.probe, l.account)
	}
	if r.Verdict == Broken && r.AnyAccount {
		u.retryAt = now.Add(unreachableTime)
	}
	if r.RetryAfter > 0 {
		u.retryAt = now.Add(min(r.RetryAfter, maxBackoff))
	}
}

type Health struct {
	Model, Upstream string
	// Open means that the breaker is open for at least one account.
	Open bool
	// Limit is the maximum value of InFlight. 0 means no limit.
	InFlight, Limit int
	// Found means that the upstream is behind a DNS name. Replicas is the number of servers, and the other numbers
	// are their totals.
	Found    bool
	Replicas int
}

func (u *upstream) health() Health {
	u.mu.Lock()
	defer u.mu.Unlock()
	return Health{Model: u.model, Upstream: u.row.Name, Open: len(u.breaker.pauses) > 0, InFlight: u.inFlight, Limit: u.limit}
}
