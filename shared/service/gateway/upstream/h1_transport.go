package upstream

import (
	"context"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"
)

// h1Transport makes calls over plain HTTP/1.1, each on its caller's goroutine. http.Transport uses
// two goroutines per connection, and switching to them takes longer than the rest of a call.
type h1Transport struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	address string

	mu sync.Mutex
	// idle lists the idle connections, least recently used first.
	idle []*h1Conn
	// sweep is the timer that closes old idle connections. If it is nil, idle is empty.
	sweep *time.Timer
}

// call makes a call. If a kept connection turns out to be closed, the call is repeated on another connection. If the
// server may have received the request, it is repeated once at most.
func (t *h1Transport) call(ctx context.Context, target *url.URL, request Request) (Reply, error) {
	repeated := false
	for {
		conn, began, err := t.take(ctx)
		if err != nil {
			return Reply{}, err
		}
		r, err := conn.call(ctx, began, target, request)
		if err == nil {
			return r, nil
		}
		conn.drop()
		if conn.used.IsZero() || conn.answered || err == ErrSilent || ctx.Err() != nil {
			return Reply{}, err
		}
		if err != errNotIdle {
			if repeated {
				return Reply{}, err
			}
			repeated = true
			t.closeIdle() // probably closed as well
		}
	}
}

// take returns a connection and the present time.
func (t *h1Transport) take(ctx context.Context) (*h1Conn, time.Time, error) {
	t.mu.Lock()
	if last := len(t.idle) - 1; last >= 0 {
		conn := t.idle[last]
		t.idle[last] = nil
		t.idle = t.idle[:last]
		t.mu.Unlock()
		if now := time.Now(); now.Sub(conn.used) < idleConnectionTime {
			return conn, now, nil
		}
		// All other connections have been idle for even longer, so close them too.
		conn.drop()
		t.closeIdle()
	} else {
		t.mu.Unlock()
	}
	conn, err := t.dial(ctx, "tcp", t.address)
	if err != nil {
		return nil, time.Time{}, err
	}
	return newH1Conn(conn, t), time.Now(), nil
}

func (t *h1Transport) keep(conn *h1Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle) >= idleConnections {
		conn.drop()
		return
	}
	conn.used = time.Now()
	t.idle = append(t.idle, conn)
	if t.sweep == nil {
		t.sweep = time.AfterFunc(idleConnectionTime, t.closeOld)
	}
}

// closeOld closes connections that have been idle for too long, and reschedules itself while other connections
// remain.
func (t *h1Transport) closeOld() {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := slices.IndexFunc(t.idle, func(c *h1Conn) bool { return time.Since(c.used) < idleConnectionTime })
	if fresh < 0 {
		fresh = len(t.idle)
	}
	for _, conn := range t.idle[:fresh] {
		conn.drop()
	}
	t.idle = slices.Delete(t.idle, 0, fresh)
	if t.sweep = nil; len(t.idle) > 0 {
		t.sweep = time.AfterFunc(idleConnectionTime-time.Since(t.idle[0].used), t.closeOld)
	}
}

func (t *h1Transport) closeIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conn := range t.idle {
		conn.drop()
	}
	t.idle = nil
}
