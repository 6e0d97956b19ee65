package room

import (
	"net"
	"net/netip"
	"sync"
)

// fairListener keeps those of one address from taking all of a listener's connections.
// What is above maxFromAddress is closed.
type fairListener struct {
	net.Listener

	mu   sync.Mutex
	open map[netip.Prefix]int
}

func newFairListener(l net.Listener) *fairListener {
	return &fairListener{Listener: l, open: map[netip.Prefix]int{}}
}

// Accept waits for a connection.
//
// Errors: those of the listener.
func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := networkOf(conn.RemoteAddr())
		if l.count(from, 1) <= maxFromAddress {
			return &fairConn{Conn: conn, leave: sync.OnceFunc(func() { l.count(from, -1) })}, nil
		}
		l.count(from, -1)
		_ = conn.Close()
	}
}

// count adds to the connections from somewhere, and returns how many there are.
func (l *fairListener) count(from netip.Prefix, more int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.open[from] + more
	if l.open[from] = n; n == 0 {
		delete(l.open, from)
	}
	return n
}

// networkOf returns what belongs to one caller: an address of version 4, and of version 6
// the network that every caller has of its own.
func networkOf(remote net.Addr) netip.Prefix {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	address := tcp.AddrPort().Addr().Unmap()
	bits := 32
	if address.Is6() {
		bits = 64
	}
	network, _ := address.Prefix(bits) // fails for lengths that no address has
	return network
}

// fairConn is a connection that is counted until it is closed.
type fairConn struct {
	net.Conn
	leave func()
}

// Close closes the connection. It may be called again.
//
// Errors: those of the connection.
func (c *fairConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
