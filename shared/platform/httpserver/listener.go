package httpserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lingerBytes and lingerTime limit how much is read after a faulty request, and for how long,
	// so that the client gets the response before the connection closes.
	lingerBytes = 256 << 10
	lingerTime  = 250 * time.Millisecond
	maxRefusal  = 1 << 10
	// maxUnsent is the kernel's unsent data per connection in bytes. All connections together must leave most of 2 GiB.
	maxUnsent = 32 << 10
)

// watchedListener watches only TCP connections.
type watchedListener struct {
	net.Listener
	newRequestID func() string
	connections  *connections
}

func (l watchedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		tcp, ok := conn.(*net.TCPConn)
		if err != nil || !ok {
			return conn, err
		}
		watched := &watchedConn{LazyConn: LazyConn{Conn: tcp}, tcp: tcp, newRequestID: l.newRequestID, connections: l.connections}
		if address, ok := tcp.RemoteAddr().(*net.TCPAddr); ok {
			from := address.AddrPort().Addr()
			watched.network, watched.site = NetworkOf(from, 64), NetworkOf(from, 48)
		}
		if l.connections.admit(watched) {
			limitUnsent(tcp)
			return watched, nil
		}
		tcp.Close()
	}
}

// limitUnsent limits the unsent data in the kernel to maxUnsent. Unlike a small send buffer, this does not slow down
// downloads.
func limitUnsent(conn *net.TCPConn) {
	raw, _ := conn.SyscallConn() // fails only for a nil connection
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
	})
}

// watchedConn rejects faulty requests. Only one goroutine may read from it at a time.
type watchedConn struct {
	LazyConn
	tcp *net.TCPConn
	// read contains the bytes that the loop read before it passed the connection to net/http.
	read         []byte
	newRequestID func() string
	// The fields network to forgotten are guarded by the lock in connections.
	connections       *connections
	network           netip.Prefix
	site              netip.Prefix
	ofNetwork, ofSite *int
	// queue is the queue that contains this connection, between the connections before and after. It may be nil.
	queue         *queue
	before, after *watchedConn
	account       string
	idle          bool
	forgotten     bool
	framing       framing
	fault         error
	// refused is set once net/http has responded without a handler.
	refused atomic.Bool
	// answering is set while a handler responds. At other times, writes are net/http's own responses.
	answering atomic.Bool
	upgraded  atomic.Bool
}

// Read reads up to a faulty request. From then on, it returns an error.
func (c *watchedConn) Read(p []byte) (int, error) {
	if c.fault != nil {
		return 0, c.fault
	}
	n, err := copy(p, c.read), error(nil)
	if c.read = c.read[n:]; n == 0 {
		n, err = c.LazyConn.Read(p)
	}
	if n == 0 || c.upgraded.Load() {
		return n, err
	}
	faultless, fault := c.framing.follow(p[:n])
	if fault == nil {
		return n, err
	}
	c.fault = fault
	if faultless > 0 {
		return faultless, nil
	}
	return 0, fault
}

// net/http sends this header in response to an unreadable request.
var refusalHeader = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// net/http sends this status in response to an unknown expectation.
var expectationFailed = []byte("HTTP/1.1 417 ")

// Write adds a request id to net/http's own responses, because every response must have one.
func (c *watchedConn) Write(p []byte) (int, error) {
	if len(p) > maxRefusal || c.answering.Load() || c.upgraded.Load() || !bytes.HasPrefix(p, []byte("HTTP/1.1 ")) {
		return c.LazyConn.Write(p)
	}
	status, rest, _ := bytes.Cut(p, []byte("\r\n"))
	switch {
	case bytes.HasPrefix(p[len(status):], refusalHeader):
		c.refused.Store(true)
	case bytes.HasPrefix(p, expectationFailed) && !bytes.Contains(p, []byte("\r\n"+requestIDHeader+": ")):
	default:
		return c.LazyConn.Write(p)
	}
	id := []byte("\r\n" + requestIDHeader + ": " + c.newRequestID() + "\r\n")
	if _, err := c.LazyConn.Write(slices.Concat(status, id, rest)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite lets net/http end the stream before it closes a connection with unread bytes.
func (c *watchedConn) CloseWrite() error { return c.tcp.CloseWrite() }

// SetWriteBuffer sets the size of the system's send buffer, in bytes. WebSockets use it.
func (c *watchedConn) SetWriteBuffer(bytes int) error { return c.tcp.SetWriteBuffer(bytes) }

// If a connection is closed with unread bytes, the system resets it, and the client loses the end of the
// response. So after net/http's own responses, Close first ends the stream and discards incoming bytes.
func (c *watchedConn) Close() error {
	c.connections.closed(c)
	if c.refused.Load() {
		_ = c.CloseWrite() // fails if the client has disconnected
		_ = c.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, &c.LazyConn, lingerBytes)
	}
	return c.tcp.Close()
}

type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

func beginAnswer(ctx context.Context) {
	if watched, ok := ctx.Value(connKey{}).(*watchedConn); ok {
		watched.answering.Store(true)
	}
}

// followState notes when a connection starts to wait for the next request, and when it no longer uses HTTP.
func followState(conn net.Conn, state http.ConnState) {
	watched, ok := conn.(*watchedConn)
	switch {
	case !ok:
	case state == http.StateIdle:
		watched.answering.Store(false)
		watched.connections.note(watched, true)
	case state == http.StateActive:
		watched.connections.note(watched, false)
	case state == http.StateHijacked:
		watched.upgraded.Store(true)
	}
}
