package httpserver

import (
	"cmp"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	maxConnections = 2048
	// fullLogEvery is the minimum time between log lines about closed connections.
	fullLogEvery = time.Minute
)

// connections limits a server's open connections. When a limit is reached, a new connection replaces one without a
// known account. If every connection has a known account, the new one is closed. The replaced connection is from the
// site and address with the most connections. It is the connection that has been idle longest or, if all are busy,
// the oldest.
type connections struct {
	mu   sync.Mutex
	most int
	// open counts the connections per address (per /64 network for IPv6), at most perHost. sites
	// does the same per /48 network, at most perSite, because a customer may own an entire /48.
	open, sites      map[netip.Prefix]*int
	perHost, perSite int
	total            int
	// known lists each account's protected connections, oldest first. They are at most perAccount, so that an account
	// leaves connections for others, even behind a proxy with a single address. protected counts them, and is at most
	// maxProtected, so that a new connection always finds one to replace.
	known                   map[string]*queue
	protected, maxProtected int
	perAccount              int
	// unknown lists each connection that is waiting for a request, or whose request has no known
	// account yet. The least recently changed connection comes first.
	unknown queue
	logger  *slog.Logger
	// replaced and refused count the connections closed since the last log line.
	replaced, refused int
	logged            time.Time
}

// ConnectionLimit returns the given limit, or a lower limit that leaves three quarters of the process's file
// descriptors for other uses.
func ConnectionLimit(most int) int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		most = min(most, max(int(min(uint64(limit.Cur), 1<<20))/4, 16))
	}
	return most
}

func newConnections(logger *slog.Logger) *connections {
	most := ConnectionLimit(maxConnections)
	return &connections{
		most: most, perHost: most / 2, perSite: most * 3 / 4, perAccount: most / 8, maxProtected: most - most/8,
		open: map[netip.Prefix]*int{}, sites: map[netip.Prefix]*int{}, known: map[string]*queue{},
		logger: logger,
	}
}

// NetworkOf returns an IPv6 address's network with the given prefix length. For an IPv4 address it
// returns the address itself.
func NetworkOf(address netip.Addr, bits int) netip.Prefix {
	if address = address.Unmap(); address.Is4() {
		bits = address.BitLen()
	}
	network, _ := address.WithZone("").Prefix(bits)
	return network
}

// admit counts a connection and reports whether it may be served. It may close another connection.
func (c *connections) admit(conn *watchedConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	neighbor := func(other *watchedConn) bool { return other.network == conn.network }
	nearby := func(other *watchedConn) bool { return other.site == conn.site }
	if count(c.open, conn.network) >= c.perHost && !c.evict(neighbor) ||
		count(c.sites, conn.site) >= c.perSite && !c.evict(nearby) ||
		c.total >= c.most && !c.evict(func(*watchedConn) bool { return true }) {
		c.refused++
		c.log()
		return false
	}
	conn.ofNetwork, conn.ofSite = increased(c.open, conn.network), increased(c.sites, conn.site)
	c.total++
	c.unknown.insert(conn, nil)
	return true
}

func count(counts map[netip.Prefix]*int, of netip.Prefix) int {
	if n := counts[of]; n != nil {
		return *n
	}
	return 0
}

func increased(counts map[netip.Prefix]*int, of netip.Prefix) *int {
	n := counts[of]
	if n == nil {
		n = new(int)
		counts[of] = n
	}
	*n++
	return n
}

// evict closes a connection that has no known account and for which the function `fits` returns true. It returns
// false if there is none.
func (c *connections) evict(fits func(*watchedConn) bool) bool {
	var chosen *watchedConn
	for conn := c.unknown.first; conn != nil; conn = conn.after {
		if !fits(conn) {
			continue
		}
		more := 1
		if chosen != nil {
			more = cmp.Or(*conn.ofSite-*chosen.ofSite, *conn.ofNetwork-*chosen.ofNetwork)
		}
		if more > 0 || more == 0 && conn.idle && !chosen.idle {
			chosen = conn
		}
	}
	if chosen == nil {
		return false
	}
	c.forget(chosen)
	_ = chosen.tcp.Close()
	c.replaced++
	c.log()
	return true
}

// log logs closed connections, at most once per fullLogEvery.
func (c *connections) log() {
	if now := time.Now(); now.Sub(c.logged) >= fullLogEvery {
		c.logger.Warn("closed connections at a limit", "replaced", c.replaced, "refused", c.refused,
			"limit", c.most, "limit_per_address", c.perHost)
		c.logged, c.replaced, c.refused = now, 0, 0
	}
}

// forget stops counting a connection. Calling it again has no effect.
func (c *connections) forget(conn *watchedConn) {
	c.keep(conn)
	if conn.forgotten {
		return
	}
	conn.forgotten = true
	c.total--
	if *conn.ofNetwork--; *conn.ofNetwork == 0 {
		delete(c.open, conn.network)
	}
	if *conn.ofSite--; *conn.ofSite == 0 {
		delete(c.sites, conn.site)
	}
}

// keep removes a connection from its queue, so that it cannot be evicted. The caller must hold the lock.
func (c *connections) keep(conn *watchedConn) {
	if conn.queue != nil {
		conn.queue.remove(conn)
	}
	if conn.account != "" {
		conn.account = ""
		c.protected--
	}
}

func (c *connections) setKnown(conn *watchedConn, account string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.known[account]
	if own == nil {
		if len(c.known) > c.total { // an account usually comes back, so its empty queue is kept for a while
			maps.DeleteFunc(c.known, func(_ string, q *queue) bool { return q.length == 0 })
		}
		own = &queue{}
		c.known[account] = own
	}
	if conn.forgotten || conn.account != "" || own.length >= c.perAccount ||
		c.protected >= c.maxProtected && !c.unprotect(own.length+1) {
		return
	}
	c.keep(conn)
	own.insert(conn, nil)
	conn.account = account
	c.protected++
}

// unprotect lets a new connection replace the oldest connection of the account with the most protected connections. It
// returns false if no account has more of them than the given number.
func (c *connections) unprotect(than int) bool {
	var most *queue
	for _, own := range c.known {
		if own.length > than {
			most, than = own, own.length
		}
	}
	if most == nil {
		return false
	}
	oldest := most.first
	c.keep(oldest)
	c.unknown.insert(oldest, c.unknown.first)
	return true
}

func (c *connections) closed(conn *watchedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(conn)
}

// note records that a connection has become idle or has started a request.
func (c *connections) note(conn *watchedConn, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.idle = idle
	c.keep(conn)
	if !conn.forgotten {
		c.unknown.insert(conn, nil)
	}
}

// queue is a list of connections. A connection is in at most one queue.
type queue struct {
	first, last *watchedConn
	length      int
}

// insert adds a connection before the connection next, or at the end if next is nil.
func (q *queue) insert(conn, next *watchedConn) {
	conn.queue, conn.before, conn.after = q, q.last, next
	if next != nil {
		conn.before = next.before
	}
	q.length++
	q.link(conn.before, conn)
	q.link(conn, next)
}

func (q *queue) remove(conn *watchedConn) {
	q.length--
	q.link(conn.before, conn.after)
	conn.queue, conn.before, conn.after = nil, nil, nil
}

// link makes two connections neighbors. nil stands for an end of the queue.
func (q *queue) link(before, after *watchedConn) {
	if before == nil {
		q.first = after
	} else {
		before.after = after
	}
	if after == nil {
		q.last = before
	} else {
		after.before = before
	}
}
