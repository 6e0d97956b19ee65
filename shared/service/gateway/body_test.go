package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
)

type unending struct {
	conn   net.Conn
	status chan int // the response's status, or 0 if the connection ended without one
}

func (w *world) hold(key string, filler []byte, pieces int) *unending {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	must(w.t, err)
	h := &unending{conn, make(chan int, 1)}
	fmt.Fprintf(conn,
		"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", key,
		pieces*len(filler)+1)
	go func() {
		for range pieces {
			// The write fails after the gateway has given up.
			if _, err := conn.Write(filler); err != nil {
				return
			}
		}
	}()
	go func() {
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			h.status <- 0
			return
		}
		h.status <- response.StatusCode
	}()
	return h
}

// heap returns the heap memory in use, in MiB.
func heap() int {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse >> 20)
}

// resident returns the heap memory that the process has obtained from the system, in MiB.
func resident() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int((m.HeapSys - m.HeapReleased) >> 20)
}

// Unfinished 31 MB bodies together use far less memory than their size. Most of them are rejected,
// other callers are not affected, and all memory is released.
func TestUnfinishedBodiesUseLimitedMemory(t *testing.T) {
	const bodies = 12
	w := newWorld(t, setup{rows: longRow, upstreams: []*modelServer{newUpstream(t, always(200, whole))},
		bodyWait: 200 * time.Millisecond})
	filler := bytes.Repeat([]byte("x"), 1<<20)
	before := heap()
	held := make([]*unending, bodies)
	for i := range held {
		held[i] = w.hold(studio, filler, 31)
	}
	// At most four of these bodies fit into half of the gateway's memory.
	const fit = 4
	refusals := 0
	timeout := time.After(await.Max)
	var answered sync.WaitGroup
	statuses := make(chan int, bodies)
	for _, h := range held {
		answered.Go(func() { statuses <- <-h.status })
	}
	for refusals < bodies-fit {
		select {
		case status := <-statuses:
			if refusals++; status != 429 {
				t.Fatalf("a body got %d", status)
			}
		case <-timeout:
			t.Fatalf("%d of %d bodies were rejected temporarily, want %d", refusals, bodies, bodies-fit)
		}
	}
	if grown := heap() - before; grown > 200 {
		t.Errorf("%d bodies hold %d MiB", bodies, grown)
	}
	long := strings.Replace(plain, "one two", strings.Repeat("y", 1<<20), 1)
	other := w.do(w.request(t.Context(), "POST", "/v1/chat/completions", rival, strings.NewReader(long)))
	if other.status != 200 {
		t.Errorf("another account: %d %s", other.status, other.body)
	}
	if a := w.chat(plain); a.status != 200 {
		t.Errorf("a small request of the account: %d %s", a.status, a.body)
	}
	for _, h := range held {
		h.conn.Close()
	}
	answered.Wait()
	w.eventually("memory to return to the system", func() bool { return resident()-before < 64 })
	w.eventually("memory to be released", func() bool { return heap()-before < 20 })
	if a := w.chat(long); a.status != 200 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

func TestBodiesOfTwoAccountsLeaveMemory(t *testing.T) {
	w := newWorld(t, setup{rows: longRow, upstreams: []*modelServer{newUpstream(t, always(200, whole))}, bodyWait: time.Millisecond})
	for _, account := range []string{"studio", "rival"} {
		for w.gateway.HoldBody(account, 1<<20) {
		}
	}
	big := strings.Replace(plain, "one two", strings.Repeat("y", 5<<20), 1)
	a := w.do(w.request(t.Context(), "POST", "/v1/chat/completions", third, strings.NewReader(big)))
	if a.status != 200 {
		t.Errorf("the third account: %d %s", a.status, a.body)
	}
}

func TestBodyWaitsForMemory(t *testing.T) {
	w := newWorld(t, setup{rows: longRow, upstreams: []*modelServer{newUpstream(t, always(200, whole))}, bodyWait: await.Max})
	filler := bytes.Repeat([]byte("x"), 1<<20)
	held := []*unending{w.hold(studio, filler, 31), w.hold(studio, filler, 31), w.hold(studio, filler, 31),
		w.hold(studio, filler, 31), w.hold(studio, filler, 31)}
	w.eventually("a body to wait", func() bool { return w.gateway.BodiesWaiting() > 0 })
	long := strings.Replace(plain, "one two", strings.Repeat("y", 8<<20), 1)
	got := make(chan answer, 1)
	go func() { got <- w.chat(long) }()
	for _, h := range held {
		h.conn.Close()
	}
	if a := await.Receive(t, "got", got); a.status != 200 {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestDisconnectedCallerStopsWaitingForMemory(t *testing.T) {
	w := newWorld(t, setup{rows: longRow, upstreams: []*modelServer{newUpstream(t, always(200, whole))}, bodyWait: await.Max})
	filler := bytes.Repeat([]byte("x"), 1<<20)
	for range 2 {
		var held []*unending
		for range 6 {
			held = append(held, w.hold(studio, filler, 31))
		}
		w.eventually("a body to wait", func() bool { return w.gateway.BodiesWaiting() > 0 })
		for _, h := range held {
			h.conn.Close()
		}
		w.eventually("the wait to end", func() bool { return w.gateway.BodiesWaiting() == 0 })
	}
	ctx, end := context.WithTimeout(t.Context(), await.Max)
	defer end()
	long := strings.Replace(plain, "one two", strings.Repeat("y", 30<<20), 1)
	if a := w.do(w.request(ctx, "POST", "/v1/chat/completions", studio,
		io.NopCloser(strings.NewReader(long)))); a.status != 200 {
		t.Errorf("got %d %s: %v", a.status, a.body, a.err)
	}
}

// Responses that an upstream sends slowly use only part of the gateway's memory.
func TestUnfinishedResponsesUseLimitedMemory(t *testing.T) {
	const answers = 24
	beginning := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16000000\r\n\r\n["
	filler := bytes.Repeat([]byte(" "), 15<<20)
	u := newUpstream(t, func(c *call) {
		io.WriteString(c, beginning)
		c.Write(filler)
		io.Copy(io.Discard, c) // until the gateway disconnects
	})
	w := newWorld(t, setup{rows: longRow, upstreams: []*modelServer{u}, bodyWait: 200 * time.Millisecond})
	before := heap()
	ctx, leave := context.WithCancel(t.Context())
	statuses := make(chan int, answers)
	for range answers {
		go func() {
			statuses <- w.do(w.request(ctx, "POST", "/v1/chat/completions", studio, strings.NewReader(plain))).status
		}()
	}
	// At most eight of these responses fit into half of the budget (128 MiB). All together would need 384 MiB.
	timeout := time.After(await.Max)
	for i := range answers - 8 {
		select {
		case status := <-statuses:
			if status != 429 {
				t.Fatalf("response %d: got %d", i, status)
			}
		case <-timeout:
			t.Fatalf("%d calls were rejected temporarily, want %d", i, answers-8)
		}
	}
	if grown := heap() - before; grown > 320 {
		t.Errorf("the responses hold %d MiB", grown)
	}
	u.now(always(200, whole))
	other := w.do(w.request(t.Context(), "POST", "/v1/chat/completions", rival, strings.NewReader(plain)))
	if other.status != 200 {
		t.Errorf("another account: %d %s", other.status, other.body)
	}
	leave()
	w.eventually("memory to be released", func() bool { return heap()-before < 30 })
}
