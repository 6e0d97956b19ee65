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
	// lookupEvery is the interval between lookups of a name while calls are being made. The interval varies by a
	// tenth. lookupSoon is the interval after an address was unreachable.
	lookupEvery = 10 * time.Second
	lookupSoon  = time.Second
	lookupTime  = 5 * time.Second
	// oldAnswer is the age of a DNS answer after which calls wait for a new one. An answer can get that old while a
	// function is frozen.
	oldAnswer   = 2 * time.Minute
	maxReplicas = 256
	// lookupsAtOnce limits the concurrent lookups of names from an SRV answer.
	lookupsAtOnce = 16
)

// Resolver looks up names; *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// replicas holds the upstreams behind a DNS name. A failed lookup does not change them.
type replicas struct {
	pools *Pools
	identity

	mu            sync.Mutex
	weight, limit int
	members       []member
	// answered is when the last answer arrived. due is when the next lookup is due.
	answered, due time.Time
	// looking is closed when the running lookup ends. It is nil if none is running.
	looking chan struct{}
	failing bool
}

type lookups struct {
	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

// begin reports whether a lookup may start. If so, call running.Done when it ends.
func (l *lookups) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.running.Add(1)
	}
	return !l.stopped
}

func (l *lookups) stop() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.running.Wait()
}

// place is an address in the DNS answer for a name.
type place struct {
	address string
	weight  int
}

func (r *replicas) current(now time.Time) []member {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh(now)
	return r.members
}

// refresh starts a lookup if one is due and none is running.
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

// ready waits for a recent answer. It also returns if lookups fail or the context ends.
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

// unreachable schedules an early lookup of the name, because a replica may have disappeared.
func (r *replicas) unreachable(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if soon := r.answered.Add(lookupSoon); soon.Before(r.due) {
		r.due = soon
	}
	r.refresh(now)
}

// lookUp returns the addresses of the name, sorted and without duplicates.
func (r *replicas) lookUp(ctx context.Context) ([]place, error) {
	base, err := url.Parse(r.row.URL)
	if err != nil {
		return nil, err // cannot happen: the catalog has validated it
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
		err = errors.New("the name has no usable address")
	}
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.address, b.address) })
	places = slices.CompactFunc(places, func(a, b place) bool { return a.address == b.address })
	return places[:min(len(places), maxReplicas)], err
}

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

// services looks up a name's SRV records and uses the records with the highest priority.
func (r *replicas) services(ctx context.Context, name string) ([]place, error) {
	_, records, err := r.pools.config.Resolver.LookupSRV(ctx, "", "", name)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(record *net.SRV) bool {
		return record.Port == 0 || record.Target == "." // a record like this means that the service does not exist
	})
	for i, record := range records { // the records are sorted by priority
		if record.Priority > records[0].Priority {
			records = records[:i]
			break
		}
	}
	// Records with the same priority arrive in random order. Sort them, so that the same records are always used.
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
				return nil // the server no longer exists
			}
			return err
		})
	}
	err = group.Wait()
	return slices.Concat(found...), err
}

// callable reports whether a name's address may be called. A name server must not be able to direct
// calls to this machine, to a cloud's metadata service, or to groups of machines.
func callable(address netip.Addr, host string) bool {
	if address.IsLoopback() {
		return host == "localhost" || strings.HasSuffix(host, ".localhost")
	}
	return address.IsValid() && !address.IsUnspecified() && !address.IsMulticast() &&
		!address.IsLinkLocalUnicast() && !address.IsInterfaceLocalMulticast() &&
		address != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func (r *replicas) answer(places []place, err error) {
	now := r.pools.config.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	jitter := 0.9 + 0.2*r.pools.config.Random()
	r.due = now.Add(time.Duration(jitter * float64(lookupEvery)))
	close(r.looking)
	r.looking = nil
	if was := r.failing; err != nil {
		r.failing = true
		if !was && r.pools.life.Err() == nil {
			r.log(slog.LevelWarn, "cannot look up the name of a model server; using the last result", slog.Any("error", err))
		}
		return
	}
	r.failing, r.answered = false, now
	r.replace(places)
}

// replace sets the members. Members that remain keep their state.
func (r *replicas) replace(places []place) {
	before := r.members
	r.members = make([]member, 0, len(places))
	for _, p := range places {
		u := find(before, p.address)
		if u == nil {
			u = r.pools.replica(r, p.address)
		}
		u.setLimit(r.limit)
		r.members = append(r.members, member{u, r.weight * p.weight})
	}
	gone := 0
	for _, m := range before {
		if find(r.members, m.upstream.address) == nil {
			m.upstream.transport.closeIdle() // running calls continue
			gone++
		}
	}
	if gone > 0 || len(r.members) > len(before) {
		r.log(slog.LevelInfo, "the addresses of a model server changed", slog.Int("servers", len(r.members)), slog.Int("gone", gone))
	}
}

func (r *replicas) closeIdle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		m.upstream.transport.closeIdle()
	}
}

func find(members []member, address string) *upstream {
	for _, m := range members {
		if m.upstream.address == address {
			return m.upstream
		}
	}
	return nil
}

func (r *replicas) update(weight, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.weight == weight && r.limit == limit {
		return
	}
	members := slices.Clone(r.members)
	for i := range members {
		members[i].weight = members[i].weight / r.weight * weight
		members[i].upstream.setLimit(limit)
	}
	r.members, r.weight, r.limit = members, weight, limit
}

// health combines all replicas. Per-address states would create an unlimited number of metric labels.
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
