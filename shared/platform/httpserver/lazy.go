package httpserver

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// LazyConn is a connection that seldom changes its timers. A timer that fires too early is set again, and the read or
// write continues. Setting a later deadline thus takes no work.
type LazyConn struct {
	net.Conn
	read, write lazyDeadline
}

// rearmAfter limits how far ahead a timer is set at first, so that the next deadlines are usually later.
const rearmAfter = 5 * time.Second

type lazyDeadline struct {
	mu sync.Mutex
	// wanted is the deadline. armed is the time of the connection's timer. A zero time means none. aborted means that the
	// deadline is in the past, so that a read or write in progress ends.
	wanted, armed time.Time
	aborted       bool
}

func (c *LazyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for n == 0 && err != nil && c.read.again(err, c.Conn.SetReadDeadline) {
		n, err = c.Conn.Read(p)
	}
	return n, err
}

// ReadRaw is raw.Read, with this connection's deadline. raw must belong to this connection.
func (c *LazyConn) ReadRaw(raw syscall.RawConn, read func(fd uintptr) (done bool)) error {
	err := raw.Read(read)
	for err != nil && c.read.again(err, c.Conn.SetReadDeadline) {
		err = raw.Read(read)
	}
	return err
}

func (c *LazyConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	for err != nil && c.write.again(err, c.Conn.SetWriteDeadline) {
		var more int
		more, err = c.Conn.Write(p[n:])
		n += more
	}
	return n, err
}

func (c *LazyConn) SetReadDeadline(t time.Time) error { return c.read.want(t, c.Conn.SetReadDeadline) }

func (c *LazyConn) SetWriteDeadline(t time.Time) error {
	return c.write.want(t, c.Conn.SetWriteDeadline)
}

func (c *LazyConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (d *lazyDeadline) want(t time.Time, set func(time.Time) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	if !d.aborted && (t.IsZero() || !d.armed.IsZero() && !t.Before(d.armed)) {
		return nil
	}
	if d.aborted = !t.IsZero() && t.Before(longAgo); !d.aborted {
		if first := time.Now().Add(rearmAfter); t.IsZero() || t.After(first) {
			t = first
		}
	}
	d.armed = t
	return set(t)
}

// longAgo is later than the deadlines with which net/http and the upstreams' connections end a read in progress.
var longAgo = time.Unix(1e6, 0)

// again sets the timer if it has fired before the deadline. If not, the error is final.
func (d *lazyDeadline) again(err error, set func(time.Time) error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted.IsZero() && !time.Now().Before(d.wanted) {
		return false
	}
	d.armed = d.wanted
	return set(d.armed) == nil
}
