package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxPlainBody is the size of the greatest request that is written whole
	// before its answer is read, in bytes: it fits into the buffers of a
	// connection, so that the writing does not wait for the server.
	maxPlainBody = 32 << 10
	// maxInterim bounds how many interim answers (1xx) may come before the final
	// one.
	maxInterim = 8
)

var (
	errHeaderBreaks  = errors.New("a field of the header holds a line break")
	errHeaderTooLong = errors.New("the header of its answer is longer than 64 KiB")
)

// plainTransport carries calls over plain HTTP/1.1, each on the goroutine that
// makes it. http.Transport has two goroutines to a connection and hands every
// call over to them and back, which takes longer than all else that the gateway
// does; it still takes what is beyond this one.
type plainTransport struct {
	*http.Transport
	address string

	mu sync.Mutex
	// idle are connections without a call, in the order of their last.
	idle []*plainConn
	// sweep closes connections that are idle for too long; nil until there is
	// one.
	sweep *time.Timer
}

// plainConn is a connection, which one call has at a time.
type plainConn struct {
	net.Conn
	reader *bufio.Reader
	writer *bufio.Writer
	// left bounds what may still be read.
	left int64
	// answered reports that a byte of the call's answer was there.
	answered bool
	// used is when its last call ended; zero for a new one.
	used time.Time
}

// Read reads within the bound.
func (c *plainConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errHeaderTooLong
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.answered = c.answered || n > 0
	return n, err
}

// RoundTrip makes a call. One on a connection that turns out to have been closed
// meanwhile is made again on another.
func (t *plainTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.ContentLength > maxPlainBody {
		return t.Transport.RoundTrip(request)
	}
	for {
		conn, err := t.take(request.Context())
		if err != nil {
			return nil, err
		}
		response, err := t.exchange(conn, request)
		if err == nil {
			return response, nil
		}
		conn.Close()
		if conn.used.IsZero() || conn.answered || request.Context().Err() != nil {
			return nil, err
		}
		if request.Body, err = request.GetBody(); err != nil {
			return nil, err
		}
	}
}

// take gives an idle connection, the last used first, or a new one.
func (t *plainTransport) take(ctx context.Context) (*plainConn, error) {
	t.mu.Lock()
	if last := len(t.idle) - 1; last >= 0 {
		conn := t.idle[last]
		t.idle[last] = nil
		t.idle = t.idle[:last]
		t.mu.Unlock()
		if time.Since(conn.used) < idleConnectionTime {
			return conn, nil
		}
		conn.Close() // and so have all others been idle for too long
		t.CloseIdleConnections()
	} else {
		t.mu.Unlock()
	}
	made, err := t.DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	conn := &plainConn{Conn: made}
	conn.reader, conn.writer = bufio.NewReader(conn), bufio.NewWriter(made)
	return conn, nil
}

// keep takes a connection back whose call has ended.
func (t *plainTransport) keep(conn *plainConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle) >= idleConnections {
		conn.Close()
		return
	}
	conn.used = time.Now()
	t.idle = append(t.idle, conn)
	if t.sweep == nil {
		t.sweep = time.AfterFunc(idleConnectionTime, t.closeOld)
	}
}

// closeOld closes what is idle for too long, and comes again while there is
// more.
func (t *plainTransport) closeOld() {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := slices.IndexFunc(t.idle, func(c *plainConn) bool { return time.Since(c.used) < idleConnectionTime })
	if fresh < 0 {
		fresh = len(t.idle)
	}
	for _, conn := range t.idle[:fresh] {
		conn.Close()
	}
	t.idle = slices.Delete(t.idle, 0, fresh)
	if t.sweep = nil; len(t.idle) > 0 {
		t.sweep = time.AfterFunc(idleConnectionTime-time.Since(t.idle[0].used), t.closeOld)
	}
}

// CloseIdleConnections closes the connections that no call uses.
func (t *plainTransport) CloseIdleConnections() {
	t.Transport.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conn := range t.idle {
		conn.Close()
	}
	t.idle = nil
}

// exchange sends a request and reads the head of its answer. The end of the
// request's context interrupts it, and the reading of the answer's body.
func (t *plainTransport) exchange(conn *plainConn, request *http.Request) (*http.Response, error) {
	stop := context.AfterFunc(request.Context(), func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	conn.left, conn.answered = maxAnswerHeader, false
	err := conn.send(request)
	var response *http.Response
	for range maxInterim {
		if err != nil || response != nil && response.StatusCode >= 200 {
			break
		}
		response, err = http.ReadResponse(conn.reader, request)
	}
	if err == nil && response.StatusCode < 200 {
		err = errors.New("there were too many interim answers")
	}
	if err != nil {
		stop()
		return nil, err
	}
	conn.left = math.MaxInt64
	response.Body = &plainBody{ReadCloser: response.Body, transport: t, conn: conn, stop: stop, last: response.Close}
	return response, nil
}

// send writes a request.
func (c *plainConn) send(request *http.Request) error {
	w := c.writer
	w.Reset(c.Conn) // it may hold the error of a call before
	_, _ = w.WriteString("POST ")
	_, _ = w.WriteString(request.URL.RequestURI())
	_, _ = w.WriteString(" HTTP/1.1\r\nHost: ")
	_, _ = w.WriteString(request.URL.Host)
	for name, values := range request.Header {
		for _, value := range values {
			if strings.ContainsAny(value, "\r\n") {
				return errHeaderBreaks
			}
			_, _ = w.WriteString("\r\n")
			_, _ = w.WriteString(name)
			_, _ = w.WriteString(": ")
			_, _ = w.WriteString(value)
		}
	}
	_, _ = w.WriteString("\r\nContent-Length: ")
	_, _ = w.Write(strconv.AppendInt(w.AvailableBuffer(), request.ContentLength, 10))
	_, _ = w.WriteString("\r\n\r\n")
	// The writer keeps the first error for here.
	if _, err := io.Copy(w, request.Body); err != nil {
		return err
	}
	return w.Flush()
}

// plainBody is the body of an answer. Once it was read whole its connection
// serves the next call.
type plainBody struct {
	io.ReadCloser
	transport *plainTransport
	conn      *plainConn
	stop      func() bool
	// last reports that the server closes the connection after this answer.
	last          bool
	whole, closed bool
}

// Read reads from the body.
func (b *plainBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.whole = b.whole || err == io.EOF
	return n, err
}

// Close gives the connection back, or closes it.
func (b *plainBody) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	// When the context has ended it has interrupted the connection, or is about
	// to.
	if uninterrupted := b.stop(); uninterrupted && b.whole && !b.last && b.conn.reader.Buffered() == 0 {
		b.transport.keep(b.conn)
		return nil
	}
	return b.conn.Close()
}
