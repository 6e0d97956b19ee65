package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cutroom/shared/domain/catalog"
)

// pools holds the upstreams of every model of the current catalog. A new
// catalog keeps the state of the upstreams that the old one had too.
type pools struct {
	catalog func() *catalog.Catalog
	dialer  dialer
	secrets Secrets
	random  func() float64
	now     func() time.Time

	snapshot atomic.Pointer[snapshot]
	// mu is held while a new catalog takes over.
	mu sync.Mutex
}

// snapshot is a catalog with the pools made from it.
type snapshot struct {
	catalog *catalog.Catalog
	pools   map[string]*pool
}

// pool is the upstreams of one model.
type pool struct {
	model *catalog.Inference
	// slug is the model's id as JSON.
	slug    []byte
	members []member
	random  func() float64
	now     func() time.Time
}

// member is an upstream with its share of a model's calls.
type member struct {
	upstream *upstream
	weight   int
}

// current returns the snapshot of the current catalog.
func (p *pools) current() *snapshot {
	known := p.catalog()
	if s := p.snapshot.Load(); s != nil && s.catalog == known {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.snapshot.Load()
	if before != nil && before.catalog == known {
		return before
	}
	s := &snapshot{catalog: known, pools: map[string]*pool{}}
	for _, row := range known.InferenceModels() {
		s.pools[row.ID] = p.pool(row, before)
	}
	p.snapshot.Store(s)
	if before != nil {
		before.retire(s)
	}
	return s
}

func (p *pools) pool(row *catalog.Inference, before *snapshot) *pool {
	made := &pool{model: row, slug: quote(row.ID), random: p.random, now: p.now}
	for _, u := range row.Upstreams {
		made.members = append(made.members, member{p.upstream(row, u, before), u.Weight})
	}
	return made
}

// upstream returns the upstream from the snapshot before, or makes it.
func (p *pools) upstream(row *catalog.Inference, u catalog.Upstream, before *snapshot) *upstream {
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
		urls: map[Route]*url.URL{
			catalog.Chat: routeURL(u.URL, catalog.Chat), catalog.Completions: routeURL(u.URL, catalog.Completions),
		},
		transport: p.dialer.transport(u.URL, row.Timeouts.Connect),
		secret:    &cachedSecret{secrets: p.secrets, reference: u.Secret, now: p.now},
	}
}

// retire closes the idle connections of the upstreams that the next snapshot
// does not have; nil has none.
func (s *snapshot) retire(next *snapshot) {
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

// take chooses an upstream for a call of the account, at random by weight, from
// those that may be called now and were not tried. Upstreams that asked not to
// be called for a while are chosen only if there are no others. The error tells
// the caller when to try again.
func (p *pool) take(tried []*upstream, account string) (lease, *Error) {
	now := p.now()
	var room, spare [8]member
	for {
		available, backingOff := room[:0], spare[:0]
		why, wait := none, time.Duration(0)
		for _, m := range p.members {
			if slices.Contains(tried, m.upstream) {
				continue
			}
			obstacle, clearIn, backsOff := m.upstream.check(now, account)
			switch {
			case obstacle == none && backsOff:
				backingOff = append(backingOff, m)
				continue
			case obstacle == none:
				available = append(available, m)
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
			return lease{}, p.unavailable(why, wait)
		}
		// Another call may have taken its place since the check.
		if l, ok := p.choose(available).upstream.take(now, account); ok {
			return l, nil
		}
	}
}

// choose draws a member by weight.
func (p *pool) choose(available []member) member {
	sum := 0
	for _, m := range available {
		sum += m.weight
	}
	chosen, at := 0, int(p.random()*float64(sum))
	for chosen < len(available)-1 && at >= available[chosen].weight {
		at -= available[chosen].weight
		chosen++
	}
	return available[chosen]
}

// unavailable is the answer when no upstream can be called now.
func (p *pool) unavailable(why obstacle, wait time.Duration) *Error {
	if why == full {
		return &Error{
			Status: http.StatusTooManyRequests, Type: RateLimited, Code: RateLimitExceeded, RetryAfter: wait,
			Message: fmt.Sprintf("The model %s has all the calls that it can serve now.", p.model.ID),
		}
	}
	return &Error{
		Status: http.StatusBadGateway, Type: API, Code: UpstreamFailed, RetryAfter: wait,
		Message: fmt.Sprintf("No model server of %s answers now.", p.model.ID),
	}
}

// routeURL returns the address of a route below a base URL.
func routeURL(base string, route Route) *url.URL {
	if base == catalog.Embedded {
		base = embeddedURL
	}
	// The catalog has checked the base.
	u, err := url.Parse(base + routePath(route))
	if err != nil {
		return &url.URL{}
	}
	return u
}

// quote returns the text as JSON.
func quote(text string) []byte {
	quoted, _ := json.Marshal(text) // a string is always encoded
	return quoted
}
