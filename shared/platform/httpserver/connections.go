package httpserver

import (
	"container/list"
	"net/netip"
	"sync"
	"syscall"
)

const (
	// maxConnections is how many connections a server has open at once.
	maxConnections = 2048
	// maxPerAddress is how many of them one address has, so that others find a place. IPv6
	// addresses count by their /64 network.
	maxPerAddress = maxConnections / 2
)

// connections limits the open connections of a server. A new connection beyond a limit takes
// the place of the one that has been idle longest; if none is idle it is closed.
type connections struct {
	mu      sync.Mutex
	most    int
	perHost int
	open    map[netip.Prefix]int
	total   int
	// idle contains the *watchedConn that wait for a request, the longest idle first.
	idle *list.List
}

// newConnections leaves three quarters of the process's file descriptors to everything else.
func newConnections() *connections {
	most := maxConnections
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		most = min(most, max(int(min(uint64(limit.Cur), 1<<20))/4, 16))
	}
	return &connections{most: most, perHost: min(maxPerAddress, most/2), open: map[netip.Prefix]int{}, idle: list.New()}
}

// networkOf returns the address that a connection counts for.
func networkOf(address netip.Addr) netip.Prefix {
	address = address.Unmap()
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	network, _ := address.WithZone("").Prefix(bits)
	return network
}

// admit counts a connection and reports whether it may be served. It may close an idle one.
func (c *connections) admit(conn *watchedConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[conn.network] >= c.perHost && !c.evict(func(idle *watchedConn) bool { return idle.network == conn.network }) {
		return false
	}
	if c.total >= c.most && !c.evict(func(*watchedConn) bool { return true }) {
		return false
	}
	c.open[conn.network]++
	c.total++
	return true
}

// evict closes the connection that has been idle longest of those that fit, and reports
// whether there was one.
func (c *connections) evict(fits func(*watchedConn) bool) bool {
	for at := c.idle.Front(); at != nil; at = at.Next() {
		if conn := at.Value.(*watchedConn); fits(conn) {
			c.forget(conn)
			_ = conn.TCPConn.Close()
			return true
		}
	}
	return false
}

// forget stops counting a connection. To forget it again changes nothing.
func (c *connections) forget(conn *watchedConn) {
	c.setBusy(conn)
	if conn.forgotten {
		return
	}
	conn.forgotten = true
	c.total--
	if c.open[conn.network]--; c.open[conn.network] == 0 {
		delete(c.open, conn.network)
	}
}

// setBusy removes a connection from the idle ones.
func (c *connections) setBusy(conn *watchedConn) {
	if conn.idle != nil {
		c.idle.Remove(conn.idle)
		conn.idle = nil
	}
}

func (c *connections) closed(conn *watchedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(conn)
}

// note records whether a connection is idle.
func (c *connections) note(conn *watchedConn, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setBusy(conn)
	if idle && !conn.forgotten {
		conn.idle = c.idle.PushBack(conn)
	}
}
