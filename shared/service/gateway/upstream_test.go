package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/busytest"
	"cutroom/shared/testkit/programtest"
)

const twoRows = `
  - {id: small, routes: [chat], affinity: false, context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL0, model: weights}, {name: second, url: URL1, model: weights}]}
`

func refusing(t *testing.T) *modelServer {
	address, err := programtest.FreeAddress()
	must(t, err)
	return &modelServer{url: "http://" + address + "/v1"}
}

// The first upstream's response decides whether the second upstream is called (docs/contract/gateway.md#upstreams).
func TestFailedCallIsRetried(t *testing.T) {
	streaming := events(chunk("one"), last, used, done)
	for _, c := range []struct {
		name   string
		first  func(*call) // if nil, the connection is refused
		again  bool
		status int // for both call types
	}{
		{"a refused connection", nil, true, 200},
		{"a reset before the header", func(c *call) { c.reset() }, true, 200},
		{"an end before the header", func(c *call) {}, true, 200},
		{"429", always(429, `{}`), true, 200},
		{"502", always(502, `{}`), true, 200},
		{"503", always(503, `{}`), true, 200},
		{"504", always(504, `{}`), true, 200},
		{"a reset before the first byte", func(c *call) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
			c.reset()
		}, true, 200},
		{"500", always(500, `{}`), false, 502},
		{"400", always(400, `{}`), false, 400},
		{"401", always(401, `{}`), false, 502},
		{"an error with status 200", always(200, `{"error":{}}`), true, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := refusing(t)
			if c.first != nil {
				first = newUpstream(t, c.first)
			}
			second := newUpstream(t, always(200, whole))
			w := newWorld(t, setup{rows: twoRows, upstreams: []*modelServer{first, second}, random: func() float64 { return 0 }})
			for i, request := range []string{plain, streamed} {
				if a := w.chat(request); a.status != c.status {
					t.Errorf("got %d %s, want %d", a.status, a.body, c.status)
				}
				if got := len(second.seen()) == i+1; got != c.again {
					t.Errorf("the second upstream was called: %v, want %v", got, c.again)
				}
				second.now(streaming)
				w.wait(time.Minute) // the second upstream is now preferred for a while
			}
			attempts := 2
			if c.again {
				attempts = 4
			}
			w.completed(2)
			if got := w.outcomes(); len(got) != attempts {
				t.Errorf("the attempts were %v", got)
			}
		})
	}
}

func TestStartedResponseIsNotRetried(t *testing.T) {
	first := newUpstream(t, func(c *call) { c.stream(); c.write(eventStream(chunk("one"))); c.reset() })
	second := newUpstream(t, events(chunk("two"), done))
	w := newWorld(t, setup{rows: twoRows, upstreams: []*modelServer{first, second}, random: func() float64 { return 0 }})
	if a := w.chat(streamed); !strings.Contains(a.body, `"one"`) || strings.Contains(a.body, `"two"`) ||
		len(second.seen()) != 0 {
		t.Errorf("got %s", a.body)
	}

	release := make(chan bool)
	first.now(func(c *call) { <-release; c.reset() })
	w = newWorld(t,
		setup{rows: twoRows, upstreams: []*modelServer{first, second}, random: func() float64 { return 0 },
			keepAlive: time.Millisecond})
	response := w.open(t.Context(), streamed)
	release <- true
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.HasPrefix(string(body), ": keep-alive\n") ||
		!strings.Contains(string(body), "upstream_error") || len(second.seen()) != 0 {
		t.Errorf("after a keep-alive: %s, %v", body, err)
	}
}

// If all attempts fail, the caller gets the last error.
func TestAttemptsAreLimited(t *testing.T) {
	var upstreams []*modelServer
	list := ""
	for i := range 5 {
		upstreams = append(upstreams, newUpstream(t, always(503, `{}`)))
		list += fmt.Sprintf("{name: u%d, url: URL%d},", i, i)
	}
	rows := "\n  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [" + list + "]}\n"
	w := newWorld(t, setup{rows: rows, upstreams: upstreams})
	if a := w.chat(plain); a.status != 502 {
		t.Errorf("got %d %s", a.status, a.body)
	}
	w.completed(1)
	outcomes := w.outcomes()
	slices.Sort(outcomes)
	if len(outcomes) != 3 || len(slices.Compact(outcomes)) != 3 {
		t.Errorf("the attempts were %v", outcomes)
	}
}

func TestWeightsDistributeCalls(t *testing.T) {
	const rows = `
  - {id: small, routes: [chat], affinity: false, context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL0, weight: 1}, {name: second, url: URL1, weight: 3}]}
`
	draw := 0
	w := newWorld(t, setup{rows: rows, upstreams: []*modelServer{newUpstream(t, always(200, whole)),
		newUpstream(t, always(200, whole))},
		random: func() float64 { draw++; return float64(draw-1) / 8 }})
	for range 8 {
		w.chat(plain)
	}
	w.completed(8)
	if got := strings.Join(w.outcomes(), " "); strings.Count(got, "first") != 2 || strings.Count(got, "second") != 6 {
		t.Errorf("order of 8 calls: %s", got)
	}
}

// A full upstream is skipped. If all are full, the caller is rejected with Retry-After.
func TestConcurrencyIsLimited(t *testing.T) {
	const rows = `
  - {id: small, routes: [chat], affinity: false, context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL0, concurrency: 1}, {name: second, url: URL1, concurrency: 1}]}
`
	entered, release := make(chan bool, 2), make(chan bool)
	hold := func(c *call) { entered <- true; <-release; c.json(200, whole) }
	first, second := newUpstream(t, hold), newUpstream(t, hold)
	w := newWorld(t, setup{rows: rows, upstreams: []*modelServer{first, second}, random: func() float64 { return 0 }})
	answers := make(chan answer, 2)
	for range 2 {
		go func() { answers <- w.chat(plain) }()
		await.Receive(t, "entered", entered)
	}
	if len(first.seen()) != 1 || len(second.seen()) != 1 {
		t.Errorf("%d and %d calls", len(first.seen()), len(second.seen()))
	}
	for _, h := range w.gateway.Health() {
		if h.InFlight != 1 || h.Limit != 1 || h.Open || h.Model != "small" {
			t.Errorf("health: %+v", h)
		}
	}
	a := w.chat(plain)
	if a.status != 429 || a.header.Get("Retry-After") != "1" || !strings.Contains(a.body, `"type":"rate_limit_error"`) ||
		!strings.Contains(a.body, `"code":"rate_limit_exceeded"`) {
		t.Errorf("got %d %v %s", a.status, a.header, a.body)
	}
	close(release)
	for range 2 {
		if a := await.Receive(t, "answers", answers); a.status != 200 {
			t.Errorf("got %d", a.status)
		}
	}
	w.completed(3)
	if a := w.chat(plain); a.status != 200 {
		t.Errorf("after a call ended: %d %s", a.status, a.body)
	}
}

// A 429 is forwarded with its reason and Retry-After. It does not block the model for other accounts.
func TestUpstreamRateLimitIsForwarded(t *testing.T) {
	soon := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	for _, c := range []struct{ field, want string }{
		{"Retry-After: 7", "7"},
		{"Retry-After: 3600", "3600"},
		{"Retry-After: 1.2", "2"},
		{"Retry-After: 100000000", "3600"},
		{"Retry-After: 1e400", "3600"},
		{"Retry-After: 0", "1"},
		{"Retry-After: NaN", "1"},
		{"Retry-After: soon", "1"},
		{"Retry-After:", "1"},
		{"X-Nothing: said", "1"},
		{"Date: " + soon + "\r\nRetry-After: " + soon, "1"},
		{"Date: Mon, 02 Jan 2006 15:04:05 GMT\r\nRetry-After: Mon, 02 Jan 2006 15:05:35 GMT", "90"},
		{"Date: Mon, 02 Jan 2006 15:04:05 GMT\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT", "3600"},
		{"Retry-After: Mon, 02 Jan 2006 15:05:35 GMT", "1"},
	} {
		u := newUpstream(t,
			always(429, `{"error":{"message":"Limit of 5 images a minute.","type":"images","code":"slow_down"}}`, c.field))
		w := newWorld(t, setup{upstreams: []*modelServer{u}})
		for _, body := range []string{plain, streamed} {
			a := w.chat(body)
			want := fmt.Sprintf(errorFormat, "The model server is not accepting more calls at the moment: Limit of 5 images a minute.",
				"rate_limit_error", "null", `"rate_limit_exceeded"`)
			if a.status != 429 || a.header.Get("Retry-After") != c.want || a.body != want {
				t.Errorf("%s: got %d after %q: %s", c.field, a.status, a.header.Get("Retry-After"), a.body)
			}
		}
		for range 10 {
			w.chat(plain)
		}
		u.now(always(200, whole))
		other := w.do(w.request(t.Context(), "POST", "/v1/chat/completions", rival, strings.NewReader(plain)))
		if other.status != 200 {
			t.Errorf("%s: another caller got %d %s", c.field, other.status, other.body)
		}
		if a := w.chat(plain); a.status != 200 {
			t.Errorf("%s: the caller's next call got %d %s", c.field, a.status, a.body)
		}
	}
}

// Upstreams that are not paused are preferred. If no upstream is available, the caller gets the shortest Retry-After.
func TestPausedUpstreamIsAvoided(t *testing.T) {
	first := newUpstream(t, always(429, `{}`, "Retry-After: 30"))
	second := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{rows: twoRows, upstreams: []*modelServer{first, second}, random: func() float64 { return 0 }})
	w.stopClock()
	for range 3 {
		if a := w.chat(plain); a.status != 200 {
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
	if n := len(first.seen()); n != 1 {
		t.Errorf("the first upstream was called %d times during its pause", n)
	}
	second.now(always(429, `{}`, "Retry-After: 40"))
	if a := w.chat(plain); a.status != 429 || a.header.Get("Retry-After") != "30" {
		t.Errorf("both are paused: %d after %q %s", a.status, a.header.Get("Retry-After"), a.body)
	}
	first.now(always(500, `{}`))
	second.now(always(429, `{}`, "Retry-After: 1"))
	w.wait(45 * time.Second)
	if a := w.chat(plain); a.status != 502 {
		t.Errorf("an error of the first upstream: %d", a.status)
	}
	first.now(always(429, `{}`))
	second.now(always(503, `{}`))
	w.wait(45 * time.Second)
	if a := w.chat(plain); a.status != 429 {
		t.Errorf("429 and then 503: %d %s", a.status, a.body)
	}
}

func TestUnavailableUpstreamOpensBreaker(t *testing.T) {
	u := newUpstream(t, always(503, `{}`, "Retry-After: 7"))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	w.stopClock()
	for range 5 {
		if a := w.chat(plain); a.status != 502 || a.header.Get("Retry-After") != "7" {
			t.Errorf("got %d after %q", a.status, a.header.Get("Retry-After"))
		}
	}
	if a := w.chat(plain); a.status != 502 || len(u.seen()) != 5 {
		t.Errorf("after five failures: %d, and %d calls", a.status, len(u.seen()))
	}
	w.wait(6 * time.Second)
	u.now(always(200, whole))
	if a := w.chat(plain); a.status != 200 {
		t.Errorf("later: %d %s", a.status, a.body)
	}
}

// An account's failures may be caused by its own requests, so the circuit breaker opens only for
// that account. Failures that no request can cause open it for all accounts.
func TestBreakerIsPerAccount(t *testing.T) {
	call := func(w *world, key string) answer {
		return w.do(w.request(t.Context(), "POST", "/v1/chat/completions", key, strings.NewReader(plain)))
	}
	u := newUpstream(t, always(500, `{}`))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	w.stopClock()
	for range 7 {
		call(w, studio)
	}
	if n := len(u.seen()); n != 5 {
		t.Errorf("%d calls of the failing account, want 5", n)
	}
	call(w, rival)
	if a := call(w, rival); a.status != 502 || len(u.seen()) != 6 {
		t.Errorf("after both accounts failed: %d, and %d calls", a.status, len(u.seen()))
	}
	w.wait(6 * time.Second)
	call(w, studio) // this probe fails, which must not pause other accounts
	u.now(always(200, whole))
	if a := call(w, third); a.status != 200 {
		t.Errorf("another account: %d %s", a.status, a.body)
	}
	if a := call(w, rival); a.status != 200 {
		t.Errorf("a failing account after its pause: %d %s", a.status, a.body)
	}
	if a := call(w, studio); a.status != 502 {
		t.Errorf("the failing account got %d", a.status)
	}
	w.wait(11 * time.Second)
	for _, key := range []string{rival, studio} {
		if a := call(w, key); a.status != 200 {
			t.Errorf("after a probe: %d %s", a.status, a.body)
		}
	}

	gone := refusing(t)
	w = newWorld(t, setup{upstreams: []*modelServer{gone}})
	w.stopClock()
	for range 5 {
		call(w, studio)
	}
	if a := call(w, rival); !strings.Contains(a.body, "No model server for small is available at the moment.") {
		t.Errorf("no server accepts connections: %d %s", a.status, a.body)
	}
}

// A response over 16 MiB fails its call but is not held against the server, because the request is to blame.
func TestLongResponseDoesNotOpenBreaker(t *testing.T) {
	padded := func(n int) string { return whole + strings.Repeat(" ", n-len(whole)) }
	u := newUpstream(t, always(200, padded(16<<20)))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	if a := w.chat(plain); a.status != 200 {
		t.Errorf("the longest response: %d %s", a.status, a.body)
	}
	u.now(always(200, padded(16<<20+1)))
	for i := range 6 {
		key := []string{studio, rival}[i%2]
		if a := await.Receive(t, "a call", w.chatAs(t.Context(), key, "long")); a.status != 502 || len(u.seen()) != i+2 {
			t.Errorf("call %d with a longer response: %d after %d calls", i, a.status, len(u.seen()))
		}
	}
}

func TestBreakerOpensAndCloses(t *testing.T) {
	u := newUpstream(t, always(500, `{}`))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	w.stopClock()
	calls := 0
	call := func(status int, reaches bool) {
		t.Helper()
		a := w.chat(plain)
		if reaches {
			calls++
		}
		if a.status != status || len(u.seen()) != calls {
			t.Errorf("got %d %s after %d calls of the upstream, want %d after %d",
				a.status, a.body, len(u.seen()), status, calls)
		}
	}
	open := func(want bool) {
		t.Helper()
		if h := w.gateway.Health()[0]; h.Open != want || h.InFlight != 0 || h.Upstream != "first" {
			t.Errorf("health: %+v, want open=%v", h, want)
		}
	}
	for range 4 {
		call(502, true)
	}
	u.now(always(400, `{}`))
	call(400, true) // any response resets the count
	u.now(always(500, `{}`))
	for range 5 {
		open(false)
		call(502, true)
	}
	open(true)
	call(502, false)
	w.wait(6 * time.Second)
	call(502, true) // the breaker's probe
	open(true)
	w.wait(6 * time.Second)
	call(502, false) // the pause has doubled
	w.wait(6 * time.Second)
	u.now(always(200, whole))
	call(200, true)
	open(false)
	call(200, true)
}

// If a probe is abandoned, the next one may start.
func TestBreakerProbesOneAtATime(t *testing.T) {
	u := newUpstream(t, always(500, `{}`))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	w.stopClock()
	for range 5 {
		w.chat(plain)
	}
	w.wait(6 * time.Second)
	entered := make(chan bool)
	u.now(func(c *call) { entered <- true; <-c.left })
	ctx, leave := context.WithCancel(t.Context())
	go func() { w.do(w.request(ctx, "POST", "/v1/chat/completions", studio, strings.NewReader(plain))) }()
	await.Receive(t, "entered", entered)
	if a := w.chat(plain); a.status != 502 || len(u.seen()) != 6 {
		t.Errorf("during the probe: %d %s", a.status, a.body)
	}
	leave()
	w.completed(7)
	u.now(always(200, whole))
	if a := w.chat(plain); a.status != 200 {
		t.Errorf("after an abandoned probe: %d %s", a.status, a.body)
	}
}

func TestSilentUpstreamTimesOut(t *testing.T) {
	// Each case shortens only the timeout that it tests, because machines may be slow.
	const first, idle = "first_byte: 50ms", "first_byte: 1m, idle: 50ms"
	silent := func(c *call) { <-c.left }
	for _, c := range []struct {
		name, timeouts, request string
		upstream                func(*call)
		status                  int
	}{
		{"no header", first, plain, silent, 504},
		{"no header, limited by the platform", "connect: 1m", plain, silent, 504},
		{"no header of a stream", first, streamed, silent, 504},
		{"no first chunk", first, streamed, func(c *call) { c.stream(); <-c.left }, 504},
		{"only comments before the first chunk", first, streamed, func(c *call) {
			c.stream()
			for c.write(": wait\n\n") == nil {
				time.Sleep(time.Millisecond)
			}
		}, 504},
		{"silence within a response", idle, plain, func(c *call) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
			<-c.left
		}, 504},
		{"silence within a stream", idle, streamed, func(c *call) {
			c.stream()
			c.write(eventStream(chunk("one")))
			<-c.left
		}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rows := `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, timeouts: {` + c.timeouts + `}, upstreams: [{name: first, url: URL0}]}
`
			s := setup{rows: rows, upstreams: []*modelServer{newUpstream(t, c.upstream)}}
			if c.timeouts == "connect: 1m" {
				s.longestSilence = 50 * time.Millisecond
			}
			w := newWorld(t, s)
			a := w.chat(c.request)
			if a.status != c.status || !strings.Contains(a.body, `"type":"api_error","param":null,"code":"upstream_timeout"`) {
				t.Errorf("got %d %s", a.status, a.body)
			}
			if c.status == 200 && !strings.HasSuffix(a.body, "\n\n"+eventStream(done)) {
				t.Errorf("the stream ends with %s", a.body)
			}
			w.completed(1)
			if got := w.outcomes(); len(got) != 1 || got[0] != "first: timed_out" {
				t.Errorf("the outcomes are %v", got)
			}
		})
	}
}

func TestConnectTimeoutTriesAnotherUpstream(t *testing.T) {
	// Fill the backlog of a listener that never accepts, so that the next connection hangs.
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must(t, err)
	defer syscall.Close(socket)
	must(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, syscall.Listen(socket, 0))
	name, err := syscall.Getsockname(socket)
	must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	fill := func(wait time.Duration) {
		for range 200 {
			conn, err := net.DialTimeout("tcp", address, wait)
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
		t.Fatal("the listener accepts every connection")
	}
	const rows = `
  - {id: small, routes: [chat], affinity: false, context_length: 8192, max_output_length: 1000, timeouts: {connect: TIME, first_byte: TIME}, upstreams: [{name: first, url: URL0}, {name: second, url: URL1}]}
`
	for _, request := range []string{plain, strings.Replace(plain, "one two", strings.Repeat("x", 64<<10), 1)} {
		busytest.Try(t, time.Second, func(connect time.Duration) error {
			fill(connect)
			w := newWorld(t, setup{
				rows:      strings.ReplaceAll(rows, "TIME", connect.String()),
				upstreams: []*modelServer{{url: "http://" + address}, newUpstream(t, always(200, whole))},
				random:    func() float64 { return 0 },
			})
			a := w.chat(request)
			w.completed(1)
			if got := strings.Join(w.outcomes(), ", "); a.status != 200 || got != "first: timed_out, second: succeeded" {
				return fmt.Errorf("%d %s after %v", a.status, a.body, got)
			}
			return nil
		})
	}
}

// The timeout applies only to silence within a stream.
func TestLongStreamIsNotTimedOut(t *testing.T) {
	t.Parallel()
	const pieces, pauses = 22, 20 // the pauses together equal the timeout
	const rows = `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, timeouts: {first_byte: TIME, idle: TIME}, upstreams: [{name: first, url: URL0}]}
`
	busytest.Try(t, time.Second, func(silence time.Duration) error {
		u := newUpstream(t, func(c *call) {
			c.stream()
			for range pieces {
				c.write(eventStream(chunk("x")))
				time.Sleep(silence / pauses)
			}
			c.write(eventStream(last, used, done))
			c.end()
		})
		w := newWorld(t, setup{rows: strings.ReplaceAll(rows, "TIME", silence.String()), upstreams: []*modelServer{u}})
		if a := w.chat(streamed); strings.Contains(a.body, "error") || strings.Count(a.body, `"x"`) != pieces {
			return fmt.Errorf("got %s", a.body)
		}
		return nil
	})
}

// No header fields of the caller are sent, not even the request id.
func TestUpstreamGetsOnlyItsOwnHeader(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(key, []byte("sk-upstream\n"), 0o600))
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [{url: URL0, model: org/weights, secret: "file:` + key + `"}]}
`})
	w.chat(`{"model":"small", "seed":1.50,"messages":[{"role":"user","content":"\u00e9"}],"max_tokens":5000}`,
		"X-Request-Id: r1", "Cookie: c", "X-Api-Key: k", "OpenAI-Organization: o")
	got := u.seen()[0]
	if want := `{"model":"org/weights", "seed":1.50,"messages":[{"role":"user","content":"\u00e9"}],"max_tokens":1000}`; got.body != want {
		t.Errorf("the body is %s, want %s", got.body, want)
	}
	header := http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"cutroom"}, "Authorization": {"Bearer sk-upstream"},
		"Content-Length": {fmt.Sprint(len(got.body))}, "Accept-Encoding": {"identity"},
	}
	if fmt.Sprint(got.header) != fmt.Sprint(header) || got.path != "/v1/chat/completions" || got.method != "POST" {
		t.Errorf("got %s %s %v", got.method, got.path, got.header)
	}
	w.chat(streamed)
	if got := u.seen()[1]; got.header.Get("Accept") != "text/event-stream" ||
		!strings.Contains(got.body, `"stream_options":{"include_usage":true}`) {
		t.Errorf("a stream: %v %s", got.header, got.body)
	}
}

func TestKeyHeaderIsSent(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(key, []byte("sk-upstream\n"), 0o600))
	for setting, want := range map[string][2]string{
		"key_header: x-api-key":                          {"X-Api-Key", "2023-06-01"},
		"key_header: X-API-Key, version: \"2024-10-22\"": {"X-Api-Key", "2024-10-22"},
		"key_header: api-key":                            {"Api-Key", ""},
		"key_header: authorization, version: \"v1\"":     {"Authorization", "v1"},
	} {
		u := newUpstream(t, always(200, whole))
		w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [{url: URL0, secret: "file:` + key + `", ` + setting + `}]}
`})
		for _, body := range []string{plain, strings.Replace(plain, "one", strings.Repeat("x", 40<<10), 1)} {
			w.chat(body)
			got := u.seen()[len(u.seen())-1].header
			for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
				secret := ""
				if name == want[0] {
					secret = "sk-upstream"
				}
				if strings.TrimPrefix(got.Get(name), "Bearer ") != secret {
					t.Errorf("%s: %s is %q", setting, name, got.Get(name))
				}
			}
			if got.Get("Anthropic-Version") != want[1] {
				t.Errorf("%s: the version is %q", setting, got.Get("Anthropic-Version"))
			}
		}
	}
}

func TestOverloadedServerIsUnavailable(t *testing.T) {
	busy := newUpstream(t, always(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "Retry-After: 7"))
	free := newUpstream(t, speaking)
	w := newWorld(t, setup{upstreams: []*modelServer{busy, free}, random: func() float64 { return 0 }, rows: `
  - {id: itself, routes: [messages], affinity: false, context_length: 8192, max_output_length: 1000, upstreams: [{name: a, url: URL0}, {name: b, url: URL1}]}
`})
	call := dialectCall{"/v1/messages", "itself", false}
	if a := w.post(call.path, call.body()); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := w.outcomes(); len(got) != 2 || got[0] != "a: overloaded" {
		t.Errorf("the outcomes are %v", got)
	}
}

type noSecrets struct{}

func (noSecrets) Secret(context.Context, string) (string, error) {
	return "", errors.New("no secret")
}

func TestUpstreamIsNotCalledWithoutKey(t *testing.T) {
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}, secrets: noSecrets{}, rows: `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [{url: URL0, secret: "env:CUTROOM_TEST_NO_SUCH_KEY"}]}
`})
	if a := w.chat(plain); a.status != 502 || len(u.seen()) != 0 || strings.Contains(a.body, "NO_SUCH") {
		t.Errorf("got %d %s", a.status, a.body)
	}
	w.recorded(0)
}

func TestReloadKeepsUpstreamState(t *testing.T) {
	u, other := newUpstream(t, always(500, `{}`)), newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u, other}})
	w.stopClock()
	for range 5 {
		w.chat(plain)
	}
	w.load(strings.ReplaceAll(oneRow, "model: weights", "model: weights, concurrency: 3"))
	if h := w.gateway.Health(); len(h) != 1 || !h[0].Open || h[0].Limit != 3 {
		t.Errorf("after the first reload: %+v", h)
	}
	w.load(strings.ReplaceAll(oneRow, "url: URL0", "url: URL1"))
	if h := w.gateway.Health(); len(h) != 1 || h[0].Open {
		t.Errorf("after the second: %+v", h)
	}
	if a := w.chat(plain); a.status != 200 {
		t.Errorf("got %d %s", a.status, a.body)
	}
	w.load(strings.ReplaceAll(oneRow, "id: small", "id: large"))
	if a := w.chat(plain); a.status != 404 {
		t.Errorf("a removed model: %d %s", a.status, a.body)
	}
}

type slow struct {
	asked   chan string
	release chan string
}

func (s slow) Secret(ctx context.Context, _ string) (string, error) {
	s.asked <- "asked"
	select {
	case value := <-s.release:
		return value, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Calls are not delayed by a slow key renewal, or by a caller that disconnects while the key is fetched.
func TestHangingSecretBlocksNoCall(t *testing.T) {
	const rows = `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL0, secret: "env:SLOW"}]}
`
	u := newUpstream(t, always(200, whole))
	keys := slow{make(chan string, 9), make(chan string)}
	w := newWorld(t, setup{rows: rows, upstreams: []*modelServer{u}, secrets: keys})
	ctx, leave := context.WithCancel(t.Context())
	go func() { w.do(w.request(ctx, "POST", "/v1/chat/completions", studio, strings.NewReader(plain))) }()
	await.Receive(t, "keys.asked", keys.asked)
	got := make(chan answer, 1)
	go func() {
		got <- w.do(w.request(t.Context(), "POST", "/v1/chat/completions", rival, strings.NewReader(plain)))
	}()
	leave()
	keys.release <- "old"
	if a := await.Receive(t, "got", got); a.status != 200 {
		t.Errorf("after a caller disconnected: %d %s", a.status, a.body)
	}
	w.wait(6 * time.Minute)
	for range 3 {
		if a := w.chat(plain); a.status != 200 {
			t.Errorf("during the renewal of the key: %d %s", a.status, a.body)
		}
	}
	await.Receive(t, "keys.asked", keys.asked)
	if n := len(keys.asked); n > 0 {
		t.Errorf("%d concurrent fetches", n+1)
	}
	w.eventually("calls with the new key", func() bool {
		select {
		case keys.release <- "new":
		default: // the fetch timed out and will be repeated
			w.wait(6 * time.Minute)
		}
		w.chat(plain)
		calls := u.seen()
		return calls[len(calls)-1].header.Get("Authorization") == "Bearer new"
	})
}
