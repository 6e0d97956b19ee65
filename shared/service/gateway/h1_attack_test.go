package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
)

// scripted calls the function serve for every connection, with the connection's number, starting from 1.
func scripted(t *testing.T, serve func(n int64, conn net.Conn, requests *bufio.Reader)) (u *modelServer,
	connections *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	connections = &atomic.Int64{}
	u = &modelServer{url: "http://" + listener.Addr().String() + "/v1"}
	u.gone.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n := connections.Add(1)
			u.gone.Go(func() {
				defer conn.Close()
				serve(n, conn, bufio.NewReader(conn))
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		u.gone.Wait()
	})
	return u, connections
}

func take(requests *bufio.Reader) (ok bool) {
	request, err := http.ReadRequest(requests)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, request.Body)
	return err == nil
}

// Bytes that no call asked for might belong to another caller.
func TestUnsolicitedBytesAreNotAResponse(t *testing.T) {
	foreign := strings.Replace(whole, "hello there", "for somebody else", 1)
	for name, unasked := range map[string]string{
		"a complete response":   inLength(foreign),
		"a timeout response":    "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"the end of a response": "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := make(chan bool)
			u, connections := scripted(t, func(n int64, conn net.Conn, requests *bufio.Reader) {
				for call := 1; take(requests); call++ {
					io.WriteString(conn, inLength(whole))
					if n == 1 && call == 1 {
						<-said
						io.WriteString(conn, unasked)
						said <- true
					}
				}
			})
			w := newWorld(t, setup{upstreams: []*modelServer{u}})
			for call := range 3 {
				if a := w.chat(plain); a.status != 200 || a.body != asSmall(whole) {
					t.Errorf("call %d: got %d %s", call, a.status, a.body)
				}
				if call == 0 {
					said <- true
					await.Receive(t, "said", said)
				}
			}
			if n := connections.Load(); n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
		})
	}
}

// A call is repeated only if its connection was reused and no byte of its response has arrived.
func TestClosedConnectionIsReplaced(t *testing.T) {
	for _, c := range []struct {
		name        string
		second      string // response to a connection's second call
		reset       bool
		status      int
		connections int64
	}{
		{"closed", "", false, 200, 2},
		{"reset", "", true, 200, 2},
		{"closed in the header", "HTTP/1.1 200 OK\r\nContent-", false, 502, 1},
		{"closed in the body", inLength(whole)[:120], false, 502, 1},
	} {
		for _, request := range []string{plain, strings.Replace(streamed, `"stream":true`, `"stream":false`, 1)} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				u, connections := scripted(t, func(n int64, conn net.Conn, requests *bufio.Reader) {
					for call := 1; take(requests); call++ {
						if n == 1 && call == 2 {
							io.WriteString(conn, c.second)
							if c.reset {
								conn.(*net.TCPConn).SetLinger(0)
							}
							return
						}
						io.WriteString(conn, inLength(whole))
					}
				})
				w := newWorld(t, setup{upstreams: []*modelServer{u}})
				if a := w.chat(request); a.status != 200 {
					t.Errorf("the first call: %d %s", a.status, a.body)
				}
				if a := w.chat(request); a.status != c.status {
					t.Errorf("the second call: %d %s, want %d", a.status, a.body, c.status)
				}
				if n := connections.Load(); n != c.connections {
					t.Errorf("%d connections, want %d", n, c.connections)
				}
			})
		}
	}
}

func TestAmbiguousConnectionsAreNotReused(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	chunked := inChunks(whole, "")[strings.Index(inChunks(whole, ""), "\r\n\r\n")+4:]
	length := strings.TrimPrefix(inLength(whole), head)
	for name, answer := range map[string]string{
		"Connection: close":      head + "Connection: Keep-Alive, Close\r\n" + length,
		"HTTP/1.0":               strings.Replace(inLength(whole), "HTTP/1.1", "HTTP/1.0", 1),
		"a length and chunks":    head + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunked,
		"no content, but a body": "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
		"not modified":           "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n",
		"longer than its length": inLength(whole) + "{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, connections := scripted(t, func(_ int64, conn net.Conn, requests *bufio.Reader) {
				for take(requests) {
					io.WriteString(conn, answer)
				}
			})
			w := newWorld(t, setup{upstreams: []*modelServer{u}})
			for range 2 {
				w.chat(plain)
			}
			if n := connections.Load(); n != 2 {
				t.Errorf("%d connections for two calls", n)
			}
		})
	}
}

func TestKeyWithLineBreakIsNotSent(t *testing.T) {
	for _, large := range []bool{false, true} {
		key := filepath.Join(t.TempDir(), "key")
		must(t, os.WriteFile(key, []byte("sk\r\nContent-Length: 0\r\n\r\nPOST /v1/other HTTP/1.1"), 0o600))
		u := newUpstream(t, always(200, whole))
		w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [{url: URL0, secret: "file:` + key + `"}]}
`})
		request := plain
		if large {
			request = strings.Replace(plain, "one two", strings.Repeat("x", 64<<10), 1)
		}
		if a := w.chat(request); a.status != 502 || len(u.seen()) != 0 || strings.Contains(w.log.String(), "/v1/other") {
			t.Errorf("got %d %s; the upstream saw %v; the log: %s", a.status, a.body, u.seen(), w.log)
		}
	}
}

func TestEveryCallerGetsItsOwnResponse(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ User string }
		if json.NewDecoder(r.Body).Decode(&request) != nil {
			return
		}
		half := len(request.User) / 2
		io.WriteString(w, `{"choices":[{"message":{"content":"`+request.User[:half])
		http.NewResponseController(w).Flush()
		io.WriteString(w, request.User[half:]+`"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	defer server.Close()
	w := newWorld(t, setup{upstreams: []*modelServer{{url: server.URL}}})
	const callers, calls = 16, 60
	var answered atomic.Int64
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			for call := range calls {
				ctx, leave := context.WithCancel(t.Context())
				if random.IntN(2) == 0 {
					time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, leave)
				}
				name := fmt.Sprintf("caller-%d-call-%d", caller, call)
				a := w.do(w.request(ctx, "POST", "/v1/chat/completions", studio,
					strings.NewReader(strings.Replace(plain, "{", `{"user":"`+name+`",`, 1))))
				leave()
				if a.err != nil {
					continue // this caller disconnected
				}
				answered.Add(1)
				if a.status != 200 || !strings.Contains(a.body, `"content":"`+name+`"`) {
					t.Errorf("%s: got %d %s", name, a.status, a.body)
				}
			}
		})
	}
	all.Wait()
	if n := answered.Load(); n < callers*calls/4 {
		t.Errorf("%d of %d calls got a response", n, callers*calls)
	}
}

// The connection is closed immediately, without reading the rest.
func TestProtocolSwitchFails(t *testing.T) {
	closed := make(chan struct{})
	u, _ := scripted(t, func(_ int64, conn net.Conn, requests *bufio.Reader) {
		defer close(closed)
		take(requests)
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		io.Copy(io.Discard, requests)
	})
	if a := newWorld(t, setup{upstreams: []*modelServer{u}}).chat(plain); a.status != http.StatusBadGateway {
		t.Errorf("got %d %s: %v", a.status, a.body, a.err)
	}
	await.Receive(t, "closed", closed)
}
