package room

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/pion/stun/v4"
	"golang.org/x/net/netutil"

	"cutroom/shared/platform/httpserver"
)

// fairListener limits connections in total, per address and per IPv6 network. It closes connections beyond
// maxFromAddress and maxFromSite.
type fairListener struct {
	net.Listener

	mu   sync.Mutex
	open map[netip.Prefix]int
	// names maps the user names of peers (RFC 8445, section 7.2.2) to their numbers of connections. For any other
	// name, the library would allocate memory and keep it after the connection ends.
	names map[string]*int
}

func newFairListener(l net.Listener) *fairListener {
	l = netutil.LimitListener(smallSends{l}, httpserver.ConnectionLimit(maxMediaConnections))
	return &fairListener{Listener: l, open: map[netip.Prefix]int{}, names: map[string]*int{}}
}

// smallSends limits the bytes that wait in the system for a client.
type smallSends struct{ net.Listener }

func (l smallSends) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetWriteBuffer(tcpBuffer) // if this fails, the system's limit applies
	}
	return conn, err
}

func (l *fairListener) know(name string, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !known {
		delete(l.names, name)
	} else if l.names[name] == nil {
		l.names[name] = new(int)
	}
}

// enter counts a connection of a peer until leave is called. ok is false for an unknown peer, or
// one with too many connections.
func (l *fairListener) enter(name string) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	connections := l.names[name]
	if connections == nil || *connections == maxFromPeer {
		return nil, false
	}
	*connections++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		*connections--
	}, true
}

func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, site := networkOf(conn, 64), networkOf(conn, 48)
		leave := func() { l.count(from, -1) }
		fits := l.count(from, 1) <= maxFromAddress
		if site != from { // IPv6
			fits = l.count(site, 1) <= maxFromSite && fits
			leave = func() { l.count(from, -1); l.count(site, -1) }
		}
		if fits {
			return &fairConn{Conn: conn, enter: l.enter, leave: leave, stall: stallTime}, nil
		}
		leave()
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

func networkOf(conn net.Conn, bits int) netip.Prefix {
	return httpserver.NetworkOf(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(), bits)
}

// fairConn fails unless its first frame is a STUN request for a known user name. It is closed when its client has
// read nothing for the time in stall.
type fairConn struct {
	net.Conn
	enter func(name string) (leave func(), ok bool)
	stall time.Duration

	mu sync.Mutex
	// leave is called once.
	leave func()
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
	name, _, _ := strings.Cut(user.String(), ":")
	leave, ok := c.enter(name)
	if !ok {
		return errStranger
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.leave
	c.leave = func() { before(); leave() }
	return nil
}

var errStranger = errors.New("the connection names no peer, or one with too many connections")

func (c *fairConn) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.stall)) // if it fails, so does the write
	n, err := c.Conn.Write(b)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

// Close may be called more than once.
func (c *fairConn) Close() error {
	c.mu.Lock()
	leave := c.leave
	c.leave = func() {}
	c.mu.Unlock()
	leave()
	return c.Conn.Close()
}
