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
	// lookupEvery is how often a name is looked up while calls are made, plus or minus a tenth, so that
	// instances do not ask at once. lookupSoon is the interval after an address was unreachable.
	lookupEvery = 10 * time.Second
	lookupSoon  = time.Second
	lookupTime  = 5 * time.Second
	// oldAnswer is the age of an answer from which calls wait for a new one: a function may have
	// slept for hours.
	oldAnswer = 2 * time.Minute
	// maxReplicas limits the used addresses of a name.
	maxReplicas = 256
	// lookupsAtOnce limits concurrent lookups of the names in an SRV answer.
	lookupsAtOnce = 16
)

// Resolver looks up names; *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// replicas are the upstreams behind a DNS name. They change with its answers; a call keeps its
// upstream. A failed lookup changes nothing.
type replicas struct {
	pools *Pools
	// identity is common to the replicas.
	identity

	mu sync.Mutex
	// share and limit apply to each replica.
	share, limit int
	members      []member
	// answered is when the last answer came, due when the next lookup is.
	answered, due time.Time
	// looking is closed when the running lookup has ended; nil without one.
	looking chan struct{}
	// failing means that the last lookup failed.
	failing bool
}

// lookups counts running lookups.
type lookups struct {
	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

// begin reports whether a lookup may start. running.Done must end it.
func (l *lookups) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.running.Add(1)
	}
	return !l.stopped
}

// stop prevents new lookups, and waits for running ones.
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

// current returns the replicas, and starts a lookup if it is due.
func (r *replicas) current(now time.Time) []member {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh(now)
	return r.members
}

// refresh starts a lookup if it is due and no other is running.
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

// ready waits for an answer that is not too old, until the context ends. If lookups fail, it does
// not wait: the last answer is used.
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

// unreachable records that a replica could not be reached: it may be gone.
func (r *replicas) unreachable(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if soon := r.answered.Add(lookupSoon); soon.Before(r.due) {
		r.due = soon
	}
	r.refresh(now)
}

// lookUp returns the addresses of the name, in order and each once.
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

// services looks up the SRV records of a name. It uses the first priority, with weights.
func (r *replicas) services(ctx context.Context, name string) ([]place, error) {
	_, records, err := r.pools.config.Resolver.LookupSRV(ctx, "", "", name)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(record *net.SRV) bool {
		return record.Port == 0 || record.Target == "." // the service does not exist
	})
	for i, record := range records { // they are sorted by priority
		if record.Priority > records[0].Priority {
			records = records[:i]
			break
		}
	}
	// Records of one priority come in random order; sort them, so that the same ones are used.
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

// callable reports whether an address of a name may be called. A name server must not direct calls
// to services that are only for this machine, to a cloud's metadata, or to many machines at once.
func callable(address netip.Addr, host string) bool {
	if address.IsLoopback() {
		return host == "localhost" || strings.HasSuffix(host, ".localhost")
	}
	return address.IsValid() && !address.IsUnspecified() && !address.IsMulticast() &&
		!address.IsLinkLocalUnicast() && !address.IsInterfaceLocalMulticast() &&
		address != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// answer applies the answer of a lookup.
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

// replace makes the places the members. Members that stay keep their state.
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
			m.upstream.transport.closeIdle() // a running call continues
			gone++
		}
	}
	if gone > 0 || len(r.members) > len(before) {
		r.log(slog.LevelInfo, "the servers behind a name have changed", slog.Int("servers", len(r.members)), slog.Int("gone", gone))
	}
}

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

// update applies another catalog's settings of the replicas.
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

// health returns the state of all replicas together, because their addresses would be unlimited
// label values in metrics.
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
