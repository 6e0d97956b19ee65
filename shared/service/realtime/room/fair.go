package room

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/net/netutil"

	"cutroom/shared/platform/httpserver"
)

// fairListener limits connections, also for each address, and closes those beyond maxFromAddress.
type fairListener struct {
	net.Listener

	mu   sync.Mutex
	open map[netip.Prefix]int
}

func newFairListener(l net.Listener) *fairListener {
	l = netutil.LimitListener(l, httpserver.ConnectionLimit(maxMediaConnections))
	return &fairListener{Listener: l, open: map[netip.Prefix]int{}}
}

func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := networkOf(conn)
		if l.count(from, 1) <= maxFromAddress {
			return &fairConn{Conn: conn, leave: sync.OnceFunc(func() { l.count(from, -1) })}, nil
		}
		l.count(from, -1)
		_ = conn.Close()
	}
}

func (l *fairListener) count(from netip.Prefix, more int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.open[from] + more
	if l.open[from] = n; n == 0 {
		delete(l.open, from)
	}
	return n
}

func networkOf(conn net.Conn) netip.Prefix {
	return httpserver.NetworkOf(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(), 64)
}

type fairConn struct {
	net.Conn
	leave func()
}

// Close may be called more than once.
func (c *fairConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
