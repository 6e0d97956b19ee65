package room

import (
	"container/list"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pion/stun/v4"

	"cutroom/shared/platform/httpserver"
)

// fairListener limits connections in total, per address and per IPv6 network. It closes connections beyond
// maxFromAddress and maxFromSite. At the total limit, a new connection replaces another: see leastNeeded.
type fairListener struct {
	net.Listener
	most int

	mu          sync.Mutex
	open        map[netip.Prefix]int
	connections int
	// strangers lists the connections that have named no peer, oldest first.
	strangers *list.List
	// names maps the user names of peers (RFC 8445, section 7.2.2) to their connections, oldest first. For any other
	// name, the library would allocate memory and keep it after the connection ends.
	names map[string][]*fairConn
}

func newFairListener(l net.Listener) *fairListener {
	return &fairListener{
		Listener: smallSends{l}, most: httpserver.ConnectionLimit(maxMediaConnections),
		open: map[netip.Prefix]int{}, strangers: list.New(), names: map[string][]*fairConn{},
	}
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
		l.names[name] = []*fairConn{}
	}
}

// identify notes that a connection has named a peer. It returns false for an unknown peer, or one with too many
// connections.
func (l *fairListener) identify(c *fairConn, name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names[name] == nil || len(l.names[name]) == maxFromPeer || c.closed {
		return false
	}
	c.name, l.names[name] = name, append(l.names[name], c)
	l.strangers.Remove(c.stranger)
	return true
}

func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &fairConn{Conn: conn, listener: l, networks: []netip.Prefix{networkOf(conn, 64)}, stall: stallTime}
		if site := networkOf(conn, 48); site != c.networks[0] { // IPv6
			c.networks = append(c.networks, site)
		}
		replaced, ok := l.add(c)
		if replaced != nil {
			_ = replaced.Close()
		}
		if ok {
			return c, nil
		}
		_ = conn.Close()
	}
}

// add counts a connection, unless it exceeds a limit. replaced must be closed; it may be nil.
func (l *fairListener) add(c *fairConn) (replaced *fairConn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, network := range c.networks {
		if l.open[network] >= []int{maxFromAddress, maxFromSite}[i] {
			return nil, false
		}
	}
	if l.connections >= l.most {
		if replaced = l.leastNeeded(); replaced == nil {
			return nil, false
		}
	}
	for _, network := range c.networks {
		l.open[network]++
	}
	l.connections++
	c.stranger = l.strangers.PushBack(c)
	return replaced, true
}

// leastNeeded takes the connection to replace off its list. It returns nil if every connection is its peer's only one.
// Strangers may use an eighth, because each client is a stranger at first.
func (l *fairListener) leastNeeded() *fairConn {
	var most []*fairConn
	if l.strangers.Len() < l.most/8 {
		for _, connections := range l.names {
			if len(connections) > len(most) {
				most = connections
			}
		}
	}
	if len(most) >= 2 {
		l.names[most[0].name] = most[1:]
		return most[0]
	}
	if oldest := l.strangers.Front(); oldest != nil {
		return l.strangers.Remove(oldest).(*fairConn)
	}
	return nil
}

// remove stops counting a connection. It may be called more than once.
func (l *fairListener) remove(c *fairConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	l.connections--
	l.strangers.Remove(c.stranger)
	for _, network := range c.networks {
		if l.open[network]--; l.open[network] == 0 {
			delete(l.open, network)
		}
	}
	if l.names[c.name] != nil {
		l.names[c.name] = slices.DeleteFunc(l.names[c.name], func(other *fairConn) bool { return other == c })
	}
}

func networkOf(conn net.Conn, bits int) netip.Prefix {
	return httpserver.NetworkOf(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(), bits)
}

// fairConn fails unless its first frame is a STUN request for a known user name. It is closed when its client has
// read nothing for the time in stall.
type fairConn struct {
	net.Conn
	listener *fairListener
	networks []netip.Prefix
	stall    time.Duration
	// The listener's lock guards these. name is the peer's name, if it has been received.
	stranger *list.Element
	name     string
	closed   bool
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
	if !c.listener.identify(c, name) {
		return errStranger
	}
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
	c.listener.remove(c)
	return c.Conn.Close()
}
