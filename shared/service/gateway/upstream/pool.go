package upstream

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
)

// Config configures the pools. Fields are required unless their comment says otherwise.
type Config struct {
	// Catalog returns the current catalog. An upstream keeps its state as long as it stays in the catalog.
	Catalog func() *catalog.Catalog
	Secrets Secrets
	// Embedded is the model server for the base URL "embedded:", or nil.
	Embedded http.Handler
	Now      func() time.Time
	// Random returns a number in [0, 1). It is used to choose upstreams.
	Random func() float64
	// Resolver looks up the names of upstreams. nil means the system's resolver.
	Resolver Resolver
	Logger   *slog.Logger
}

type Pools struct {
	config Config
	dialer dialer
	// life is canceled by Close, which then waits for running lookups.
	life     context.Context
	end      context.CancelFunc
	lookups  lookups
	draining chan struct{}
	drained  sync.Once

	snapshot atomic.Pointer[Snapshot]
	mu       sync.Mutex
}

type Snapshot struct {
	Catalog *catalog.Catalog
	// Find is Catalog.Inference.
	Find  func(slug string) (*catalog.Inference, bool)
	pools map[string]*Pool
}

type Pool struct {
	Model *catalog.Inference
	// Slug is the model's id as JSON.
	Slug []byte
	// fixed lists upstreams with fixed addresses. named lists upstreams behind DNS names.
	fixed  []member
	named  []*replicas
	queue  *queue
	random func() float64
	now    func() time.Time
}

type member struct {
	upstream *upstream
	weight   int
}

func New(c Config) *Pools {
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	p := &Pools{config: c, draining: make(chan struct{})}
	p.life, p.end = context.WithCancel(context.Background())
	if c.Embedded != nil {
		p.dialer.embedded = newEmbedded(c.Embedded, c.Logger)
	}
	return p
}

// Drain ends all current and future waits for upstreams. Calls that have an upstream continue.
func (p *Pools) Drain() { p.drained.Do(func() { close(p.draining) }) }

// Close closes idle connections and stops the embedded model server. It must be called after all calls have ended.
func (p *Pools) Close() {
	p.end()
	p.lookups.stop()
	if s := p.snapshot.Load(); s != nil {
		s.retire(nil)
	}
	if p.dialer.embedded != nil {
		p.dialer.embedded.close()
	}
}

// Health returns the state of every upstream in catalog order. The upstreams behind a DNS name share one entry.
func (p *Pools) Health() []Health {
	var all []Health
	s := p.Current()
	for _, row := range s.Catalog.InferenceModels() {
		for _, m := range s.pools[row.ID].fixed {
			all = append(all, m.upstream.health())
		}
		for _, r := range s.pools[row.ID].named {
			all = append(all, r.health())
		}
	}
	return all
}

func (p *Pools) Queues() []QueueState {
	var all []QueueState
	s := p.Current()
	for _, row := range s.Catalog.InferenceModels() {
		q := s.pools[row.ID].queue
		if places := q.places.Load(); places > 0 {
			all = append(all, QueueState{row.ID, int(q.waiting.Load()), int(places)})
		}
	}
	return all
}

func (p *Pools) Current() *Snapshot {
	known := p.config.Catalog()
	if s := p.snapshot.Load(); s != nil && s.Catalog == known {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.snapshot.Load()
	if before != nil && before.Catalog == known {
		return before
	}
	s := &Snapshot{Catalog: known, Find: known.Inference, pools: map[string]*Pool{}}
	for _, row := range known.InferenceModels() {
		s.pools[row.ID] = p.pool(row, before)
	}
	p.snapshot.Store(s)
	if before != nil {
		before.retire(s)
	}
	return s
}

func (s *Snapshot) Pool(id string) *Pool { return s.pools[id] }

func (p *Pools) pool(row *catalog.Inference, before *Snapshot) *Pool {
	made := &Pool{
		Model: row, Slug: jsonedit.Quote(row.ID), random: p.config.Random, now: p.config.Now,
		queue: &queue{refresh: func() { p.Current() }, draining: p.draining},
	}
	if before != nil && before.pools[row.ID] != nil {
		made.queue = before.pools[row.ID].queue
	}
	defer made.queue.set(made, row)
	for _, u := range row.Upstreams {
		if u.Discovery == catalog.Fixed {
			made.fixed = append(made.fixed, member{p.upstream(made, u, before), u.Weight})
		} else {
			made.named = append(made.named, p.replicas(made, u, before))
		}
	}
	return made
}

func (p *Pool) members(now time.Time) []member {
	if len(p.named) == 0 {
		return p.fixed
	}
	if len(p.named) == 1 && len(p.fixed) == 0 {
		return p.named[0].current(now)
	}
	all := slices.Clone(p.fixed)
	for _, r := range p.named {
		all = append(all, r.current(now)...)
	}
	return all
}

// use is the number of an account's running live calls, and their recent average.
type use struct {
	now     int
	average float64
}

func (a use) less(b use) int {
	return cmp.Or(cmp.Compare(a.now, b.now), cmp.Compare(a.average, b.average))
}

func (p *Pool) uses(now time.Time, accounts []string) map[string]use {
	all := map[string]use{}
	for _, account := range accounts {
		sum := use{}
		for _, m := range p.members(now) {
			one := m.upstream.uses(now, account)
			sum.now, sum.average = sum.now+one.now, sum.average+one.average
		}
		all[account] = sum
	}
	return all
}

// hasSlotFor reports whether an account may use a slot that is free or that batch calls have.
func (p *Pool) hasSlotFor(now time.Time, account string) bool {
	return slices.ContainsFunc(p.members(now), func(m member) bool {
		m.upstream.mu.Lock()
		defer m.upstream.mu.Unlock()
		return m.upstream.isFor(now, account) && !m.upstream.isFullOfLive()
	})
}

func (p *Pool) hasBatches() bool {
	return slices.ContainsFunc(p.members(p.now()), func(m member) bool {
		m.upstream.mu.Lock()
		defer m.upstream.mu.Unlock()
		return len(m.upstream.yielding) > 0
	})
}

// Ready waits until all upstream names that are not yet resolved have been looked up, or the context ends.
func (p *Pool) Ready(ctx context.Context) {
	for _, r := range p.named {
		r.ready(ctx, p.now())
	}
}

func (p *Pools) upstream(pool *Pool, u catalog.Upstream, before *Snapshot) *upstream {
	row := pool.Model
	if before != nil && before.pools[row.ID] != nil {
		for _, known := range before.pools[row.ID].fixed {
			if known.upstream.is(row, u) {
				known.upstream.setLimit(u.Concurrency)
				return known.upstream
			}
		}
	}
	return &upstream{
		identity: p.identity(pool, u), accounts: map[string]*calls{}, batches: map[string]*batchCalls{}, limit: u.Concurrency,
		seed: seedOf(u.URL, u.Model), transport: p.dialer.transport(u.URL, "", row.Timeouts.Connect),
	}
}

func (p *Pools) identity(pool *Pool, u catalog.Upstream) identity {
	row := pool.Model
	return identity{
		queue: pool.queue, row: u, model: row.ID, quoted: jsonedit.Quote(u.Model), timeouts: row.Timeouts, urls: routeURLs(u.URL),
		secret: &cachedSecret{secrets: p.config.Secrets, reference: u.Secret, now: p.config.Now},
	}
}

func (p *Pools) replicas(pool *Pool, u catalog.Upstream, before *Snapshot) *replicas {
	row := pool.Model
	if before != nil && before.pools[row.ID] != nil {
		for _, known := range before.pools[row.ID].named {
			if known.is(row, u) {
				known.update(u.Weight, u.Concurrency)
				return known
			}
		}
	}
	return &replicas{pools: p, identity: p.identity(pool, u), weight: u.Weight, limit: u.Concurrency}
}

func (p *Pools) replica(set *replicas, address string) *upstream {
	u := set.identity
	return &upstream{
		identity: u, address: address, set: set, accounts: map[string]*calls{}, batches: map[string]*batchCalls{}, limit: set.limit,
		seed: seedOf(address, u.row.Model), transport: p.dialer.transport(u.row.URL, address, u.timeouts.Connect),
	}
}

// retire closes the idle connections of upstreams that are not in the next snapshot, if there is one.
func (s *Snapshot) retire(next *Snapshot) {
	for id, pool := range s.pools {
		for _, m := range pool.fixed {
			kept := next != nil && next.pools[id] != nil &&
				slices.ContainsFunc(next.pools[id].fixed, func(other member) bool { return other.upstream == m.upstream })
			if !kept {
				m.upstream.transport.closeIdle()
			}
		}
		for _, r := range pool.named {
			if next == nil || next.pools[id] == nil || !slices.Contains(next.pools[id].named, r) {
				r.closeIdle()
			}
		}
	}
}

// Unavailable means that no upstream of a pool can be called at the moment.
type Unavailable struct {
	// Full means that the upstreams have reached their call limits. Stopping means that Drain ended
	// the call's wait. If neither is set, the upstreams have recently failed too often.
	Full, Stopping bool
	// Wait is the suggested delay before a retry.
	Wait time.Duration
}

func (e *Unavailable) Error() string {
	switch {
	case e.Full:
		return "upstream: all upstreams have reached their call limits"
	case e.Stopping:
		return "upstream: the wait was ended by a shutdown"
	}
	return "upstream: all upstreams are paused after failures"
}

type Call struct {
	Account string
	// Affinity groups calls that should use the same upstream (request.Affinity). 0 means none.
	Affinity uint64
	Tried    []Slot
	Waited   time.Duration
	// Elsewhere means that the call can fall back to another row.
	Elsewhere bool
	// busyFor is the pause that busy upstreams asked for, or 0 if they did not.
	busyFor time.Duration
	// Yield is set for a call that must not delay others. Such a call leaves slots free and does
	// not wait. If another call needs the slot, Yield is called and must end this call soon.
	Yield func()
	// urgent is set for a call that may take the slot of a batch call at any time.
	urgent bool
	// waiting lists the accounts with calls in the queue. It is set only for a call that yields.
	waiting []string
}

func (p *Pool) HasChoice() bool { return len(p.fixed) > 1 || len(p.named) > 0 }

// Take chooses an untried upstream for a call, by affinity or at random by weight. Upstreams that asked for a pause
// are a last resort. If all upstreams are full, the call waits in the model's queue, and the waiting time is added to
// Waited.
func (p *Pool) Take(ctx context.Context, call *Call) (Slot, *Unavailable) {
	if call.Yield != nil {
		call.waiting = p.queue.accountsWaiting()
		return p.try(*call)
	}
	if call.busyFor == 0 && p.queue.waiting.Load() == 0 {
		if l, why := p.try(*call); why == nil || !why.Full {
			return l, why
		}
	}
	return p.queue.take(ctx, call)
}

// Pause makes the next Take wait for the given time. It returns false if the row has no queue or the call must not wait.
func (p *Pool) Pause(call *Call, d time.Duration) bool {
	call.busyFor = d
	return p.queue.places.Load() > 0 && call.Yield == nil
}

func (p *Pool) try(call Call) (Slot, *Unavailable) {
	now := p.now()
	members := p.members(now)
	var first, second [8]candidate
	for {
		available, backingOff := first[:0], second[:0]
		var yielding []candidate
		why, wait := none, time.Duration(0)
		for _, m := range members {
			if slices.ContainsFunc(call.Tried, func(l Slot) bool { return l.upstream == m.upstream }) {
				continue
			}
			obstacle, clearIn, state := m.upstream.check(now, &call)
			switch {
			case obstacle == none && state.yields:
				yielding = append(yielding, candidate{m, state})
				continue
			case obstacle == none && state.backsOff:
				backingOff = append(backingOff, candidate{m, state})
				continue
			case obstacle == none:
				available = append(available, candidate{m, state})
				continue
			}
			if why == none || obstacle < why {
				why = obstacle
			}
			if wait == 0 || clearIn < wait {
				wait = clearIn
			}
		}
		if len(available) == 0 {
			available = backingOff
		}
		if len(available) == 0 {
			available = yielding
		}
		if len(available) == 0 {
			return Slot{}, &Unavailable{Full: why == full, Wait: max(wait, time.Second)}
		}
		// Another call may have taken the slot in the meantime.
		if l, ok := p.choose(available, call.Affinity).upstream.take(now, &call); ok {
			return l, nil
		}
	}
}

func (p *Pool) choose(available []candidate, affinity uint64) member {
	if affinity != 0 {
		return nearest(available, affinity)
	}
	sum := 0
	for _, m := range available {
		sum += m.weight
	}
	chosen, at := 0, int(p.random()*float64(sum))
	for chosen < len(available)-1 && at >= available[chosen].weight {
		at -= available[chosen].weight
		chosen++
	}
	return available[chosen].member
}

func routeURLs(base string) map[catalog.Route]*url.URL {
	if base == catalog.Embedded {
		base = embeddedURL
	}
	urls := map[catalog.Route]*url.URL{}
	for _, route := range catalog.Routes() {
		u, err := url.Parse(base + route.Path())
		if err != nil {
			u = &url.URL{} // cannot happen: the catalog has validated the base URL
		}
		urls[route] = u
	}
	return urls
}
