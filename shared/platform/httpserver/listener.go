package httpserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// farewellBytes and farewellTime bound what is read of a connection whose
	// requests are faulty, so that its client gets the answer before the end.
	farewellBytes = 256 << 10
	farewellTime  = 250 * time.Millisecond
	// maxRefusal is how long an answer of net/http's own is at most, in bytes.
	maxRefusal = 1 << 10
)

// watchedListener accepts connections whose requests are watched. Those that are no
// TCP connections stay as they are.
type watchedListener struct {
	net.Listener
	newRequestID func() string
}

func (l watchedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		return &watchedConn{TCPConn: tcp, newRequestID: l.newRequestID}, nil
	}
	return conn, err
}

// watchedConn is a connection whose requests are refused where they are faulty. It
// is read by one goroutine at a time.
type watchedConn struct {
	*net.TCPConn
	newRequestID func() string
	framing      framing
	fault        error
	// refused reports that net/http has answered without asking any handler, before it
	// closes the connection.
	refused atomic.Bool
	// answering reports that a handler answers: what is written then is its own, and a
	// body may hold what looks like an answer of net/http's.
	answering atomic.Bool
	// free reports that the connection has been upgraded, and has no requests any more.
	free atomic.Bool
}

// Read reads up to a request that is faulty, at which it fails for good.
func (c *watchedConn) Read(p []byte) (int, error) {
	if c.fault != nil {
		return 0, c.fault
	}
	n, err := c.TCPConn.Read(p)
	if n == 0 || c.free.Load() {
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

// refusalHeader is the header of what net/http answers by itself to a request that
// cannot be read.
var refusalHeader = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// expectationFailed begins what net/http answers by itself to an expectation that it
// does not know.
var expectationFailed = []byte("HTTP/1.1 417 ")

// Write writes bytes of an answer. One of net/http's own gets an id, as all answers
// have one.
func (c *watchedConn) Write(p []byte) (int, error) {
	if len(p) > maxRefusal || c.answering.Load() || c.free.Load() || !bytes.HasPrefix(p, []byte("HTTP/1.1 ")) {
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

// WriteTo would pass Read by.
func (c *watchedConn) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{c})
}

// Close closes the connection. Closing one with bytes unread makes the system reset
// it, which takes from the client the answer that it has not read yet.
func (c *watchedConn) Close() error {
	if c.refused.Load() {
		_ = c.CloseWrite() // fails when the client has gone
		_ = c.SetReadDeadline(time.Now().Add(farewellTime))
		_, _ = io.CopyN(io.Discard, c.TCPConn, farewellBytes)
	}
	return c.TCPConn.Close()
}

type connKey struct{}

// withConn lets requests know their connection.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// beginAnswer notes that a handler answers the request from now on, which ends when
// the answer is out.
func beginAnswer(r *http.Request) {
	if watched, ok := r.Context().Value(connKey{}).(*watchedConn); ok {
		watched.answering.Store(true)
	}
}

// followState learns what becomes of a connection: one whose answer is out waits for its
// next request, and one that is taken over is no HTTP connection any more.
func followState(conn net.Conn, state http.ConnState) {
	watched, ok := conn.(*watchedConn)
	switch {
	case !ok:
	case state == http.StateIdle:
		watched.answering.Store(false)
	case state == http.StateHijacked:
		watched.free.Store(true)
	}
}
