package httpserver

import (
	"container/list"
	"net/netip"
	"sync"
	"syscall"
)

const (
	// maxConnections limits a server's open connections.
	maxConnections = 2048
	// maxPerAddress limits the connections of one address, so that others find a place. IPv6
	// addresses count by their /64 network.
	maxPerAddress = maxConnections / 2
)

// connections limits the open connections of a server. At a limit, a new connection replaces the
// longest idle one, or is closed if none is idle.
type connections struct {
	mu      sync.Mutex
	most    int
	perHost int
	open    map[netip.Prefix]int
	total   int
	// idle has the *watchedConn that wait for a request, the longest idle first.
	idle *list.List
}

// newConnections leaves three quarters of the process's file descriptors for other uses.
func newConnections() *connections {
	most := maxConnections
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		most = min(most, max(int(min(uint64(limit.Cur), 1<<20))/4, 16))
	}
	return &connections{most: most, perHost: min(maxPerAddress, most/2), open: map[netip.Prefix]int{}, idle: list.New()}
}

// networkOf returns the network that a connection counts for.
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

// evict closes the longest idle connection that fits, and reports whether it found one.
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

// forget stops counting a connection. It may be repeated.
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
