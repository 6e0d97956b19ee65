package room

import (
	"net"
	"net/netip"
	"sync"
)

// fairListener limits the connections from one address. It closes those beyond maxFromAddress.
type fairListener struct {
	net.Listener

	mu   sync.Mutex
	open map[netip.Prefix]int
}

func newFairListener(l net.Listener) *fairListener {
	return &fairListener{Listener: l, open: map[netip.Prefix]int{}}
}

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

// count changes the number of a network's connections and returns it.
func (l *fairListener) count(from netip.Prefix, more int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.open[from] + more
	if l.open[from] = n; n == 0 {
		delete(l.open, from)
	}
	return n
}

// networkOf returns the network that identifies a caller: an IPv4 address, or a customer's IPv6 network.
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
	network, _ := address.Prefix(bits) // fails only for invalid lengths
	return network
}

// fairConn is a connection that counts until it is closed.
type fairConn struct {
	net.Conn
	leave func()
}

// Close may be called more than once.
func (c *fairConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
