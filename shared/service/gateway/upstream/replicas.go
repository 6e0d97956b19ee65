package upstream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/catalog"
)

const (
	// lookupEvery is how often a name is looked up while calls are made, give or
	// take a tenth, so that instances do not ask at once. lookupSoon is how soon
	// again when an address could not be reached.
	lookupEvery = 10 * time.Second
	lookupSoon  = time.Second
	// lookupTime bounds a lookup.
	lookupTime = 5 * time.Second
	// oldAnswer is from what age on calls wait for a new answer first: a function
	// may have slept for hours.
	oldAnswer = 2 * time.Minute
	// maxReplicas bounds how many addresses of a name are used.
	maxReplicas = 256
	// lookupsAtOnce bounds how many names of an SRV answer are looked up at once.
	lookupsAtOnce = 16
)

// Resolver looks up names; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// replicas are the upstreams that a DNS name stands for. They come and go with its
// answers; a call keeps the one that it has. A lookup that fails changes nothing.
type replicas struct {
	pools *Pools
	// identity is what the replicas have in common.
	identity

	mu sync.Mutex
	// share and limit are those of each replica.
	share, limit int
	members      []member
	// answered is when the last answer came, due when the next lookup is.
	answered, due time.Time
	// looking is closed when the lookup under way has ended; nil while there is
	// none.
	looking chan struct{}
	// failing reports whether the last lookup failed.
	failing bool
}

// lookups counts those under way.
type lookups struct {
	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

// begin reports whether a lookup may begin; then running.Done ends it.
func (l *lookups) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.running.Add(1)
	}
	return !l.stopped
}

// stop lets no lookup begin any more, and waits for those under way.
func (l *lookups) stop() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.running.Wait()
}

// place is an address in a name's answer.
type place struct {
	address string
	weight  int
}

// current returns the replicas, and begins a lookup if it is time.
func (r *replicas) current(now time.Time) []member {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh(now)
	return r.members
}

// refresh begins a lookup if it is time and none is under way.
func (r *replicas) refresh(now time.Time) {
	if r.looking != nil || now.Before(r.due) || !r.pools.lookups.begin() {
		return
	}
	r.looking = make(chan struct{})
	go func() {
		defer r.pools.lookups.running.Done()
		ctx, cancel := context.WithTimeout(r.pools.life, lookupTime)
		defer cancel()
		r.answer(r.lookUp(ctx))
	}()
}

// ready waits until there is an answer that is not too old, while the context
// lasts. Where lookups fail it waits for none: the last answer holds.
func (r *replicas) ready(ctx context.Context, now time.Time) {
	r.mu.Lock()
	r.refresh(now)
	looking, old := r.looking, r.answered.IsZero() || !r.failing && now.Sub(r.answered) > oldAnswer
	r.mu.Unlock()
	if looking == nil || !old {
		return
	}
	select {
	case <-looking:
	case <-ctx.Done():
	}
}

// unreachable says that a replica could not be reached: it may be gone.
func (r *replicas) unreachable(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if soon := r.answered.Add(lookupSoon); soon.Before(r.due) {
		r.due = soon
	}
	r.refresh(now)
}

// lookUp asks for the addresses of the name, in order and each once.
func (r *replicas) lookUp(ctx context.Context) ([]place, error) {
	base, err := url.Parse(r.row.URL)
	if err != nil {
		return nil, err // it cannot be: the catalog has checked it
	}
	host, port := base.Hostname(), base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	var places []place
	if r.row.Discovery == catalog.ByAddress {
		places, err = r.addresses(ctx, host, port, 1)
	} else {
		places, err = r.services(ctx, host)
	}
	if err == nil && len(places) == 0 {
		err = errors.New("the name has no address that can be called")
	}
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.address, b.address) })
	places = slices.CompactFunc(places, func(a, b place) bool { return a.address == b.address })
	return places[:min(len(places), maxReplicas)], err
}

// addresses looks up the A and AAAA records of a host.
func (r *replicas) addresses(ctx context.Context, host, port string, weight int) ([]place, error) {
	found, err := r.pools.config.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var places []place
	for _, address := range found {
		if address = address.Unmap(); callable(address, host) {
			places = append(places, place{net.JoinHostPort(address.String(), port), weight})
		}
	}
	return places, nil
}

// services looks up the SRV records of a name, of which those of the first
// priority are used, with their weights.
func (r *replicas) services(ctx context.Context, name string) ([]place, error) {
	_, records, err := r.pools.config.Resolver.LookupSRV(ctx, "", "", name)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(record *net.SRV) bool {
		return record.Port == 0 || record.Target == "." // there is no service
	})
	for i, record := range records { // they are sorted by priority
		if record.Priority > records[0].Priority {
			records = records[:i]
			break
		}
	}
	// Those of one priority come in another order each time; of too many the same ones
	// are used.
	slices.SortFunc(records, func(a, b *net.SRV) int {
		return cmp.Or(strings.Compare(a.Target, b.Target), cmp.Compare(a.Port, b.Port))
	})
	records = records[:min(len(records), maxReplicas)]
	found := make([][]place, len(records))
	var group errgroup.Group
	group.SetLimit(lookupsAtOnce)
	for i, record := range records {
		group.Go(func() (err error) {
			found[i], err = r.addresses(ctx, strings.TrimSuffix(record.Target, "."), strconv.Itoa(int(record.Port)),
				max(int(record.Weight), 1))
			if missing := (*net.DNSError)(nil); errors.As(err, &missing) && missing.IsNotFound {
				return nil // it has left since
			}
			return err
		})
	}
	err = group.Wait()
	return slices.Concat(found...), err
}

// callable reports whether an address of a name may be called. Whoever answers for
// the name must not lead calls to what listens on this machine alone, to the
// metadata of a cloud, or to many machines at once.
func callable(address netip.Addr, host string) bool {
	if address.IsLoopback() {
		return host == "localhost" || strings.HasSuffix(host, ".localhost")
	}
	return address.IsValid() && !address.IsUnspecified() && !address.IsMulticast() &&
		!address.IsLinkLocalUnicast() && !address.IsInterfaceLocalMulticast() &&
		address != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// answer takes over the answer of a lookup.
func (r *replicas) answer(places []place, err error) {
	now := r.pools.config.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	spread := 0.9 + 0.2*r.pools.config.Random()
	r.due = now.Add(time.Duration(spread * float64(lookupEvery)))
	close(r.looking)
	r.looking = nil
	if was := r.failing; err != nil {
		r.failing = true
		if !was && r.pools.life.Err() == nil {
			r.log(slog.LevelWarn, "the name of a model server was not found; its last answer holds", slog.Any("error", err))
		}
		return
	}
	r.failing, r.answered = false, now
	r.replace(places)
}

// replace makes the places the members. Those that stay keep their state.
func (r *replicas) replace(places []place) {
	before := r.members
	r.members = make([]member, 0, len(places))
	for _, p := range places {
		u := find(before, p.address)
		if u == nil {
			u = r.pools.replica(r, p.address)
		}
		u.setLimit(r.limit)
		r.members = append(r.members, member{u, r.share * p.weight})
	}
	gone := 0
	for _, m := range before {
		if find(r.members, m.upstream.address) == nil {
			m.upstream.transport.closeIdle() // a call that it has goes on
			gone++
		}
	}
	if gone > 0 || len(r.members) > len(before) {
		r.log(slog.LevelInfo, "the servers behind a name have changed", slog.Int("servers", len(r.members)), slog.Int("gone", gone))
	}
}

// closeIdle closes the idle connections.
func (r *replicas) closeIdle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		m.upstream.transport.closeIdle()
	}
}

// find returns the upstream at an address, or nil.
func find(members []member, address string) *upstream {
	for _, m := range members {
		if m.upstream.address == address {
			return m.upstream
		}
	}
	return nil
}

// update takes over what another catalog says of the name's replicas.
func (r *replicas) update(weight, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.share == weight && r.limit == limit {
		return
	}
	members := slices.Clone(r.members)
	for i := range members {
		members[i].weight = members[i].weight / r.share * weight
		members[i].upstream.setLimit(limit)
	}
	r.members, r.share, r.limit = members, weight, limit
}

// health returns the state of all replicas together: their addresses would be
// names without end in metrics.
func (r *replicas) health() Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := Health{Model: r.model, Upstream: r.row.Name, Found: true, Replicas: len(r.members), Open: true}
	for _, m := range r.members {
		h := m.upstream.health()
		all.Open = all.Open && h.Open
		all.InFlight += h.InFlight
		all.Limit += h.Limit
	}
	return all
}

func (r *replicas) log(level slog.Level, message string, attributes ...slog.Attr) {
	about := []slog.Attr{slog.String("model", r.model), slog.String("upstream", r.row.Name)}
	r.pools.config.Logger.LogAttrs(r.pools.life, level, message, append(about, attributes...)...)
}
