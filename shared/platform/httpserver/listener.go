package httpserver

import (
	"bytes"
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// lingerBytes and lingerTime bound what is read of a connection with a faulty
	// request, so that its client gets the answer before the connection closes.
	lingerBytes = 256 << 10
	lingerTime  = 250 * time.Millisecond
	// maxRefusal bounds an answer of net/http's own, in bytes.
	maxRefusal = 1 << 10
)

// watchedListener accepts connections and watches their requests. Connections that are
// not TCP are not watched.
type watchedListener struct {
	net.Listener
	newRequestID func() string
	connections  *connections
}

// Accept returns the next connection that the limits admit.
func (l watchedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		tcp, ok := conn.(*net.TCPConn)
		if err != nil || !ok {
			return conn, err
		}
		watched := &watchedConn{TCPConn: tcp, newRequestID: l.newRequestID, connections: l.connections}
		if address, ok := tcp.RemoteAddr().(*net.TCPAddr); ok {
			watched.network = networkOf(address.AddrPort().Addr())
		}
		if l.connections.admit(watched) {
			return watched, nil
		}
		tcp.Close()
	}
}

// watchedConn is a connection whose faulty requests are refused. One goroutine at a time
// reads it.
type watchedConn struct {
	*net.TCPConn
	newRequestID func() string
	// network, idle and forgotten belong to connections.
	connections *connections
	network     netip.Prefix
	idle        *list.Element
	forgotten   bool
	framing     framing
	fault       error
	// refused is set once net/http has answered without asking a handler, just before it
	// closes the connection.
	refused atomic.Bool
	// answering is set while a handler answers: what is written then is its own, and a
	// body may look like an answer of net/http's.
	answering atomic.Bool
	// upgraded is set once the connection is no longer HTTP.
	upgraded atomic.Bool
}

// Read reads up to a faulty request, at which it fails for good.
func (c *watchedConn) Read(p []byte) (int, error) {
	if c.fault != nil {
		return 0, c.fault
	}
	n, err := c.TCPConn.Read(p)
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

// refusalHeader is the header of net/http's own answer to a request that it cannot read.
var refusalHeader = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// expectationFailed begins net/http's own answer to an expectation that it does not know.
var expectationFailed = []byte("HTTP/1.1 417 ")

// Write writes bytes of an answer. An answer of net/http's own gets a request id here,
// because all answers have one.
func (c *watchedConn) Write(p []byte) (int, error) {
	if len(p) > maxRefusal || c.answering.Load() || c.upgraded.Load() || !bytes.HasPrefix(p, []byte("HTTP/1.1 ")) {
		return c.TCPConn.Write(p)
	}
	status, rest, _ := bytes.Cut(p, []byte("\r\n"))
	switch {
	case bytes.HasPrefix(p[len(status):], refusalHeader):
		c.refused.Store(true)
	case bytes.HasPrefix(p, expectationFailed) && !bytes.Contains(p, []byte("\r\n"+requestIDHeader+": ")):
	default:
		return c.TCPConn.Write(p)
	}
	id := []byte("\r\n" + requestIDHeader + ": " + c.newRequestID() + "\r\n")
	if _, err := c.TCPConn.Write(slices.Concat(status, id, rest)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteTo keeps io.Copy from bypassing Read.
func (c *watchedConn) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{c})
}

// Close closes the connection. If bytes are unread the system resets the connection, and
// the client loses the part of the answer that it has not read yet. So Close first sends
// the end of the answer and drops what arrives.
func (c *watchedConn) Close() error {
	c.connections.closed(c)
	if c.refused.Load() {
		_ = c.CloseWrite() // fails if the client is gone
		_ = c.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes)
	}
	return c.TCPConn.Close()
}

type connKey struct{}

// withConn makes the connection known to its requests.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// beginAnswer records that a handler answers the request from now on, until the answer is
// sent.
func beginAnswer(r *http.Request) {
	if watched, ok := r.Context().Value(connKey{}).(*watchedConn); ok {
		watched.answering.Store(true)
	}
}

// followState is told what becomes of a connection: one whose answer is sent waits for
// its next request, and one that was taken over is no longer HTTP.
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
