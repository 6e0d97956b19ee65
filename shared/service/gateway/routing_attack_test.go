package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/testkit/await"
)

// Calls stop waiting if their row is removed from the catalog or its server fails.
func TestQueueEndsWithoutServers(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, setup{rows: narrowRow, upstreams: []*modelServer{g.modelServer}})
	w.chatAs(t.Context(), studio, "a0")
	await.Receive(t, "g.entered", g.entered)
	waiting := w.chatAs(t.Context(), studio, "a1")
	w.queued(1)
	w.load(strings.Replace(oneRow, "small", "another", 1))
	g.open <- true
	if got := await.Receive(t, "g.entered", g.entered); got != "a1" {
		t.Errorf("%s arrived", got)
	}
	g.open <- true
	if got := await.Receive(t, "waiting", waiting); got.status != 200 {
		t.Errorf("for a removed row: got %+v", got)
	}

	server := newUpstream(t, nil)
	entered, fail := make(chan bool, 16), make(chan bool)
	server.now(func(c *call) { entered <- true; <-fail; c.json(502, `{}`) })
	w = newWorld(t, setup{rows: strings.Replace(narrowRow, "calls: 3", "calls: 30", 1), upstreams: []*modelServer{server}})
	var all []<-chan answer
	for i := range 8 {
		all = append(all, w.chatAs(t.Context(), []string{studio, rival}[i%2], "x"))
	}
	await.Receive(t, "entered", entered)
	w.queued(7)
	close(fail)
	for _, answers := range all {
		if got := await.Receive(t, "answers", answers); got.status != 502 {
			t.Errorf("for a failed server: got %+v", got)
		}
	}
}

func TestKeepAlivePreventsFallback(t *testing.T) {
	started := make(chan bool)
	first := newUpstream(t, func(c *call) { <-started; c.json(503, `{}`) })
	second := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{rows: chain, upstreams: []*modelServer{first, second, second}, keepAlive: time.Millisecond})
	response, err := client.Do(w.request(t.Context(), http.MethodPost, "/v1/chat/completions", studio, strings.NewReader(streamed)))
	must(t, err)
	defer response.Body.Close()
	close(started)
	var text strings.Builder
	for buffer := make([]byte, 512); ; {
		n, err := response.Body.Read(buffer)
		if text.Write(buffer[:n]); err != nil {
			break
		}
	}
	if response.Header.Get("X-Served-Model") != "small" || !strings.Contains(text.String(), `"error"`) || len(second.seen()) > 0 {
		t.Errorf("got %v %s", response.Header, &text)
	}
}

// The limits of the row that serves the call apply. Odd model names neither reach a server nor break a request.
func TestFallbackRowLimitsRequest(t *testing.T) {
	down, second := newUpstream(t, always(503, `{}`)), newUpstream(t, always(200, whole))
	w := newWorld(t, setup{rows: chain, upstreams: []*modelServer{down, second, down}, tier: credential.Tier{MaxTokens: 90}})
	for body, want := range map[string]string{
		`{"model":"small","max_tokens":80,"messages":[{"role":"user","content":"x"}]}`:           `{"model":"weights","max_tokens":50,"messages":[{"role":"user","content":"x"}]}`,
		`{"mod\u0065ls":["second"],"model":"small","messages":[{"role":"user","content":"x"}]}`:  `{"model":"weights","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"small","messages":[{"role":"user","content":"x"}],"models":["second"]}`:       `{"model":"weights","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"small","models":null,"stop":null,"messages":[{"role":"user","content":"x"}]}`: `{"model":"weights","messages":[{"role":"user","content":"x"}]}`,
	} {
		before := len(second.seen())
		got := w.chat(body, "X-Session-Affinity: "+strings.Repeat("\xff~", 7_000))
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
