package gateway_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/testkit/patience"
)

// Callers that crowd a queue and leave it again leave nothing behind, and keep no
// other account out.
func TestAQueueThatIsFlooded(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, setup{rows: strings.Replace(narrowRow, "calls: 3", "calls: 20", 1), upstreams: []*modelServer{g.modelServer}})
	first := w.chatAs(t.Context(), studio, "a0")
	patience.Receive(t, "g.entered", g.entered)
	flood, leave := context.WithCancel(t.Context())
	var left []<-chan answer
	for i := range 60 {
		left = append(left, w.chatAs(flood, studio, fmt.Sprint("flood ", i)))
	}
	w.queued(20)
	other := w.chatAs(t.Context(), rival, "b0")
	refused := func() (n int) {
		for _, c := range w.completed(0) {
			if c.Status == http.StatusTooManyRequests {
				n++
			}
		}
		return n
	}
	w.eventually("41 refusals", func() bool { return refused() == 41 })
	w.queued(20)
	leave()
	w.queued(1)
	g.open <- true
	if got := patience.Receive(t, "g.entered", g.entered); got != "b0" {
		t.Errorf("%s came next", got)
	}
	g.open <- true
	for _, answers := range []<-chan answer{first, other} {
		if got := patience.Receive(t, "answers", answers); got.status != 200 {
			t.Errorf("got %+v", got)
		}
	}
	for _, answers := range left {
		patience.Receive(t, "answers", answers)
	}
	w.eventually("no calls under way", func() bool { return w.gateway.Health()[0].InFlight == 0 })
	w.recorded(2)
}

// Calls that wait for a row that is taken out of the catalog, or whose server breaks
// down, do not wait for ever.
func TestAQueueWithoutServers(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, setup{rows: narrowRow, upstreams: []*modelServer{g.modelServer}})
	w.chatAs(t.Context(), studio, "a0")
	patience.Receive(t, "g.entered", g.entered)
	waiting := w.chatAs(t.Context(), studio, "a1")
	w.queued(1)
	w.load(strings.Replace(oneRow, "small", "another", 1))
	g.open <- true
	if got := patience.Receive(t, "g.entered", g.entered); got != "a1" {
		t.Errorf("%s came", got)
	}
	g.open <- true
	if got := patience.Receive(t, "waiting", waiting); got.status != 200 {
		t.Errorf("of a row that was taken out: got %+v", got)
	}

	server := newUpstream(t, nil)
	entered, fail := make(chan bool, 16), make(chan bool)
	server.now(func(c *call) { entered <- true; <-fail; c.json(502, `{}`) })
	w = newWorld(t, setup{rows: strings.Replace(narrowRow, "calls: 3", "calls: 30", 1), upstreams: []*modelServer{server}})
	var all []<-chan answer
	for i := range 8 {
		all = append(all, w.chatAs(t.Context(), []string{studio, rival}[i%2], "x"))
	}
	patience.Receive(t, "entered", entered)
	w.queued(7)
	close(fail)
	for _, answers := range all {
		if got := patience.Receive(t, "answers", answers); got.status != 502 {
			t.Errorf("of a server that breaks down: got %+v", got)
		}
	}
}

// Once a keep-alive has begun a stream no other row is tried.
func TestNoFallbackAfterAKeepAlive(t *testing.T) {
	begun := make(chan bool)
	first := newUpstream(t, func(c *call) { <-begun; c.json(503, `{}`) })
	second := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{rows: chain, upstreams: []*modelServer{first, second, second}, keepAlive: time.Millisecond})
	response, err := client.Do(w.request(t.Context(), http.MethodPost, "/v1/chat/completions", studio, strings.NewReader(streamed)))
	must(t, err)
	defer response.Body.Close()
	close(begun)
	var text strings.Builder
	for room := make([]byte, 512); ; {
		n, err := response.Body.Read(room)
		if text.Write(room[:n]); err != nil {
			break
		}
	}
	if response.Header.Get("X-Served-Model") != "small" || !strings.Contains(text.String(), `"error"`) || len(second.seen()) > 0 {
		t.Errorf("got %v %s", response.Header, &text)
	}
}

// A call is clamped for the row that it goes to, and bytes that name models in odd
// ways neither reach a server nor break the request.
func TestRequestsOfAnotherRow(t *testing.T) {
	down, second := newUpstream(t, always(503, `{}`)), newUpstream(t, always(200, whole))
	w := newWorld(t, setup{rows: chain, upstreams: []*modelServer{down, second, down}, tier: credential.Tier{MaxTokens: 90}})
	for body, want := range map[string]string{
		`{"model":"small","max_tokens":80,"messages":[{"role":"user","content":"x"}]}`:           `{"model":"weights","max_tokens":50,"messages":[{"role":"user","content":"x"}]}`,
		`{"mod\u0065ls":["second"],"model":"small","messages":[{"role":"user","content":"x"}]}`:  `{"model":"weights","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"small","messages":[{"role":"user","content":"x"}],"models":["second"]}`:       `{"model":"weights","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"small","models":null,"stop":null,"messages":[{"role":"user","content":"x"}]}`: `{"model":"weights","messages":[{"role":"user","content":"x"}]}`,
	} {
		before := len(second.seen())
		got := w.chat(body, "X-Session-Affinity: "+strings.Repeat("\xff~", 30_000))
		if seen := second.seen(); got.status != 200 || len(seen) != before+1 || seen[before].body != want {
			t.Errorf("%s: got %+v; the server got %+v", body, got, seen[before:])
		}
	}
	for _, body := range []string{
		`{"MODELS":["second"],` + plain[1:], `{"models":["second"],"models":["third"],` + plain[1:],
		`{"models":["` + strings.Repeat("x", 100_000) + `"],` + plain[1:], `{"models":["\ud800"],` + plain[1:],
		`{"models":[["second"]],` + plain[1:], `{"models":[null],` + plain[1:],
	} {
		if got := w.chat(body); got.status < 400 || got.status >= 500 || len(got.body) > 2000 {
			t.Errorf("%.80s: got %d %.300s", body, got.status, got.body)
		}
	}
}

// A name that changes with every lookup, and one with addresses beyond number, lose
// no call and take no more than their room.
func TestANameThatRaves(t *testing.T) {
	even, odd := newUpstream(t, always(200, whole)), newUpstream(t, always(200, whole))
	known := &names{}
	known.set(nil, even)
	w := newWorld(t, setup{rows: serviceRow, resolver: known})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 40 {
				if got := w.chat(plain); got.status != 200 {
					t.Errorf("got %+v", got)
				}
				known.set(nil, []*modelServer{even, odd}[i%2])
				w.wait(20 * time.Second)
			}
		})
	}
	group.Wait()
	known.mu.Lock()
	known.records = nil
	for port := range 5000 {
		known.records = append(known.records, &net.SRV{Target: "replica.localhost.", Port: uint16(port)})
	}
	known.mu.Unlock()
	w.wait(time.Minute)
	w.eventually("many replicas", func() bool {
		w.chat(plain)
		return w.gateway.Health()[0].Replicas > 200
	})
	if got := w.gateway.Health()[0].Replicas; got > 256 {
		t.Errorf("there are %d replicas", got)
	}
	known.mu.Lock()
	known.records, known.addresses = nil, make([]netip.Addr, 100_000)
	known.mu.Unlock()
	w.wait(time.Minute)
	w.chat(plain)
}
