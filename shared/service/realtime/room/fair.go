package room

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/pion/stun/v4"
	"golang.org/x/net/netutil"

	"cutroom/shared/platform/httpserver"
)

// fairListener limits connections in total and per address. It closes connections beyond
// maxFromAddress.
type fairListener struct {
	net.Listener

	mu   sync.Mutex
	open map[netip.Prefix]int
	// names contains the user names of peers (RFC 8445, section 7.2.2). For any other name, the
	// library would allocate memory and keep it after the connection ends.
	names map[string]bool
}

func newFairListener(l net.Listener) *fairListener {
	l = netutil.LimitListener(l, httpserver.ConnectionLimit(maxMediaConnections))
	return &fairListener{Listener: l, open: map[netip.Prefix]int{}, names: map[string]bool{}}
}

func (l *fairListener) know(name string, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names[name] = known; !known {
		delete(l.names, name)
	}
}

func (l *fairListener) knows(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[name]
}

func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := networkOf(conn)
		if l.count(from, 1) <= maxFromAddress {
			return &fairConn{Conn: conn, knows: l.knows, leave: sync.OnceFunc(func() { l.count(from, -1) })}, nil
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

// fairConn fails unless its first frame is a STUN request for a known user name.
type fairConn struct {
	net.Conn
	leave func()
	knows func(name string) bool
	// first is the part of the first frame that has not been read yet.
	first   []byte
	checked bool
}

// maxFirst is the maximum size of a first frame in bytes. It is the library's own limit.
const maxFirst = 512

func (c *fairConn) Read(b []byte) (int, error) {
	if !c.checked {
		c.checked = true
		if err := c.readFirst(); err != nil {
			return 0, err
		}
	}
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// readFirst reads a frame: a two-byte length followed by a packet (RFC 4571).
func (c *fairConn) readFirst() error {
	head := make([]byte, 2)
	if _, err := io.ReadFull(c.Conn, head); err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint16(head))
	if size > maxFirst {
		return errStranger
	}
	packet := make([]byte, size)
	if _, err := io.ReadFull(c.Conn, packet); err != nil {
		return err
	}
	c.first = append(head, packet...)
	request := &stun.Message{Raw: packet}
	var user stun.Username
	if request.Decode() != nil || user.GetFrom(request) != nil {
		return errStranger
	}
	if name, _, _ := strings.Cut(user.String(), ":"); !c.knows(name) {
		return errStranger
	}
	return nil
}

var errStranger = errors.New("the connection names no peer")

// Close may be called more than once.
func (c *fairConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
