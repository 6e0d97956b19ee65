package upstream

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
)

// Config is what the pools are made of. Fields are required unless they say
// otherwise.
type Config struct {
	// Catalog returns the current catalog. A new one keeps the state of the
	// upstreams that the old one had too.
	Catalog func() *catalog.Catalog
	// Secrets returns the keys of upstreams.
	Secrets Secrets
	// Embedded is the model server behind the base URL "embedded:"; nil means
	// that there is none.
	Embedded http.Handler
	// Now measures: only its differences count.
	Now func() time.Time
	// Random returns a number in [0, 1), to choose among upstreams.
	Random func() float64
	Logger *slog.Logger
}

// Pools holds the upstreams of every model of the current catalog.
type Pools struct {
	config Config
	dialer dialer
	// closeEmbedded stops the embedded model server.
	closeEmbedded func()

	snapshot atomic.Pointer[Snapshot]
	// mu is held while a new catalog takes over.
	mu sync.Mutex
}

// Snapshot is a catalog with the pools made from it.
type Snapshot struct {
	Catalog *catalog.Catalog
	pools   map[string]*Pool
}

// Pool is the upstreams of one model.
type Pool struct {
	Model *catalog.Inference
	// Slug is the model's id as JSON.
	Slug    []byte
	members []member
	random  func() float64
	now     func() time.Time
}

// member is an upstream with its share of a model's calls.
type member struct {
	upstream *upstream
	weight   int
}

// New returns the pools. Close releases what they hold.
func New(c Config) *Pools {
	p := &Pools{config: c, closeEmbedded: func() {}}
	if c.Embedded != nil {
		p.dialer.embedded = newMemoryListener()
		p.closeEmbedded = serveEmbedded(c.Embedded, p.dialer.embedded, c.Logger)
	}
	return p
}

// Close closes the idle connections, and stops the embedded model server. Calls
// should have ended before.
func (p *Pools) Close() {
	if s := p.snapshot.Load(); s != nil {
		s.retire(nil)
	}
	p.closeEmbedded()
}

// Health returns the state of every upstream, in the catalog's order.
func (p *Pools) Health() []Health {
	var all []Health
	s := p.Current()
	for _, row := range s.Catalog.InferenceModels() {
		for _, m := range s.pools[row.ID].members {
			all = append(all, m.upstream.health())
		}
	}
	return all
}

// Current returns the snapshot of the current catalog.
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
	s := &Snapshot{Catalog: known, pools: map[string]*Pool{}}
	for _, row := range known.InferenceModels() {
		s.pools[row.ID] = p.pool(row, before)
	}
	p.snapshot.Store(s)
	if before != nil {
		before.retire(s)
	}
	return s
}

// Pool returns the pool of a model of the catalog.
func (s *Snapshot) Pool(id string) *Pool { return s.pools[id] }

func (p *Pools) pool(row *catalog.Inference, before *Snapshot) *Pool {
	made := &Pool{Model: row, Slug: jsonedit.Quote(row.ID), random: p.config.Random, now: p.config.Now}
	for _, u := range row.Upstreams {
		made.members = append(made.members, member{p.upstream(row, u, before), u.Weight})
	}
	return made
}

// upstream returns the upstream from the snapshot before, or makes it.
func (p *Pools) upstream(row *catalog.Inference, u catalog.Upstream, before *Snapshot) *upstream {
	if before != nil && before.pools[row.ID] != nil {
		for _, known := range before.pools[row.ID].members {
			same := known.upstream.row
			same.Weight, same.Concurrency = u.Weight, u.Concurrency
			if same == u && known.upstream.timeouts == row.Timeouts {
				known.upstream.setLimit(u.Concurrency)
				return known.upstream
			}
		}
	}
	return &upstream{
		row: u, model: row.ID, timeouts: row.Timeouts, limit: u.Concurrency,
		urls:      routeURLs(u.URL),
		seed:      seedOf(u.URL, u.Model),
		transport: p.dialer.transport(u.URL, row.Timeouts.Connect),
		secret:    &cachedSecret{secrets: p.config.Secrets, reference: u.Secret, now: p.config.Now},
	}
}

// retire closes the idle connections of the upstreams that the next snapshot
// does not have; nil has none.
func (s *Snapshot) retire(next *Snapshot) {
	for id, pool := range s.pools {
		for _, m := range pool.members {
			kept := next != nil && next.pools[id] != nil &&
				slices.ContainsFunc(next.pools[id].members, func(other member) bool { return other.upstream == m.upstream })
			if !kept {
				m.upstream.transport.closeIdle()
			}
		}
	}
}

// Unavailable is the error of a pool of which no upstream can be called now.
type Unavailable struct {
	// Full reports whether upstreams have all the calls that they may have.
	// Otherwise they failed too often lately.
	Full bool
	// Wait is after how long it is worth trying again.
	Wait time.Duration
}

// Error says which it is.
func (e *Unavailable) Error() string {
	if e.Full {
		return "upstream: all have as many calls as they may have"
	}
	return "upstream: none is called now, because they failed"
}

// Call is what an upstream is chosen for.
type Call struct {
	Account string
	// Affinity stands for what the call shares with others that should go to the
	// same upstream (request.Affinity); 0 means nothing.
	Affinity uint64
	// Tried are the upstreams that have failed the call.
	Tried []Lease
}

// HasChoice reports whether the calls of the pool may go to different upstreams.
func (p *Pool) HasChoice() bool { return len(p.members) > 1 }

// Take chooses an upstream for a call, by its affinity or at random by weight,
// from those that may be called now and are not among the tried. Upstreams that
// asked not to be called for a while are chosen only if there are no others.
func (p *Pool) Take(call Call) (Lease, *Unavailable) {
	now := p.now()
	var room, spare [8]candidate
	for {
		available, backingOff := room[:0], spare[:0]
		why, wait := none, time.Duration(0)
		for _, m := range p.members {
			if slices.ContainsFunc(call.Tried, func(l Lease) bool { return l.upstream == m.upstream }) {
				continue
			}
			obstacle, clearIn, state := m.upstream.check(now, call.Account)
			switch {
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
			return Lease{}, &Unavailable{Full: why == full, Wait: wait}
		}
		// Another call may have taken its place since the check.
		if l, ok := p.choose(available, call.Affinity).upstream.take(now, call.Account); ok {
			return l, nil
		}
	}
}

// choose returns the member that the affinity prefers, or draws one by weight.
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

// routeURLs returns the addresses of all routes below a base URL.
func routeURLs(base string) map[catalog.Route]*url.URL {
	if base == catalog.Embedded {
		base = embeddedURL
	}
	urls := map[catalog.Route]*url.URL{}
	for _, route := range catalog.Routes() {
		u, err := url.Parse(base + route.Path())
		if err != nil {
			u = &url.URL{} // it cannot be: the catalog has checked the base
		}
		urls[route] = u
	}
	return urls
}
