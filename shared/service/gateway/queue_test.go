package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/testkit/await"
)

const narrowRow = `
  - {id: small, routes: [chat, completions], context_length: 8192, max_output_length: 1000, queue: {calls: 3, wait: 1m}, upstreams: [{name: first, url: URL0, model: weights, concurrency: 1}]}
`

// gate is a server that responds to one call at a time, when the test allows it.
type gate struct {
	*modelServer
	entered chan string
	open    chan bool
}

func newGate(t *testing.T) gate {
	g := gate{entered: make(chan string, 16), open: make(chan bool, 16)}
	g.modelServer = newUpstream(t, func(c *call) {
		_, rest, _ := strings.Cut(c.body, `"content":"`)
		name, _, _ := strings.Cut(rest, `"`)
		g.entered <- name
		<-g.open
		c.json(200, whole)
	})
	t.Cleanup(func() { close(g.open) })
	return g
}

func (w *world) chatAs(ctx context.Context, key, text string) <-chan answer {
	answers := make(chan answer, 1)
	body := strings.Replace(plain, "one two", text, 1)
	request := w.request(ctx, http.MethodPost, "/v1/chat/completions", key, strings.NewReader(body))
	go func() { answers <- w.do(request) }()
	return answers
}

func (w *world) queued(n int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d calls in the queue", n), func() bool {
		q := w.gateway.Queues()
		return len(q) == 1 && q[0].Model == "small" && q[0].Waiting == n
	})
}

// Accounts take turns. An account with many waiting calls loses a queue position to an account with
// few. Callers that disconnect are removed.
func TestQueuedAccountsTakeTurns(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, setup{rows: narrowRow, upstreams: []*modelServer{g.modelServer}})
	ctx := t.Context()
	first := w.chatAs(ctx, studio, "a0")
	if got := await.Receive(t, "g.entered", g.entered); got != "a0" {
		t.Fatalf("%q arrived first", got)
	}
	a1 := w.chatAs(ctx, studio, "a1")
	w.queued(1)
	leaving, leave := context.WithCancel(ctx)
	a2 := w.chatAs(leaving, studio, "a2")
	w.queued(2)
	leave()
	if got := await.Receive(t, "a2", a2); got.err == nil {
		t.Errorf("an abandoned call got %+v", got)
	}
	w.queued(1)
	a3 := w.chatAs(ctx, studio, "a3")
	w.queued(2)
	a4 := w.chatAs(ctx, studio, "a4")
	w.queued(3)
	if got := await.Receive(t, "a5", w.chatAs(ctx, studio, "a5")); got.status != 429 ||
		got.header.Get("Retry-After") == "" {
		t.Errorf("over the queue's limit: got %+v", got)
	}
	b1 := w.chatAs(ctx, rival, "b1")
	if got := await.Receive(t, "a4", a4); got.status != 429 {
		t.Errorf("the last call of many got %+v", got)
	}
	w.queued(3)
	for _, want := range []string{"b1", "a1", "a3"} { // b has used less time
		g.open <- true
		if got := await.Receive(t, "g.entered", g.entered); got != want {
			t.Errorf("%s arrived before %s", got, want)
		}
	}
	g.open <- true
	for name, answers := range map[string]<-chan answer{"a0": first, "a1": a1, "a3": a3, "b1": b1} {
		if got := await.Receive(t, "answers", answers); got.status != 200 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	w.queued(0)
	w.recorded(4)
	waited := 0
	for _, c := range w.completed(7) {
		if c.Waited > 0 {
			waited++
		}
	}
	if waited < 5 {
		t.Errorf("%d calls reported a wait", waited)
	}
}

func TestAccountLeavesSlotToOthers(t *testing.T) {
	for _, queue := range []string{"queue: {calls: 3, wait: 1m}, ", ""} {
		g := newGate(t)
		row := strings.Replace(narrowRow, "queue: {calls: 3, wait: 1m}, ", queue, 1)
		w := newWorld(t, setup{rows: strings.Replace(row, "concurrency: 1", "concurrency: 4", 1), upstreams: []*modelServer{g.modelServer}})
		for range 3 {
			w.chatAs(t.Context(), studio, "a")
			await.Receive(t, "g.entered", g.entered)
		}
		more := w.chatAs(t.Context(), studio, "more")
		if queue != "" {
			w.queued(1)
		} else if got := await.Receive(t, "more", more); got.status != 429 {
			t.Errorf("a fourth call got %d, want 429", got.status)
		}
		w.chatAs(t.Context(), rival, "b")
		if got := await.Receive(t, "g.entered", g.entered); got != "b" {
			t.Errorf("%q arrived, want the other account's call", got)
		}
		if queue != "" {
			g.open <- true // lets one call end, whichever account it belongs to
			g.open <- true
			if got := await.Receive(t, "g.entered", g.entered); got != "more" {
				t.Errorf("%q arrived, want the waiting call", got)
			}
		}
	}
}

// A caller that does not read its response must not keep the slot of a server that has answered.
func TestUnreadResponseFreesItsSlot(t *testing.T) {
	u := newUpstream(t, func(c *call) {
		c.json(200, `{"choices":[{"message":{"content":"`+strings.Repeat("x", 4<<20)+`"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	})
	row := strings.Replace(narrowRow, "queue: {calls: 3, wait: 1m}, ", "", 1)
	w := newWorld(t, setup{rows: row, upstreams: []*modelServer{u}, socketBuffer: 4 << 10})
	body := `{"model":"small","messages":[{"role":"user","content":"a"}]}`
	for range 3 {
		got := w.leaveUnread(1, 4<<10, "POST /v1/chat/completions HTTP/1.1", body, regexp.MustCompile("^HTTP/1.1 [0-9]+"))
		if got[answered] != 1 {
			t.Errorf("after unread responses, the server's only slot is not free: %v", got)
		}
	}
}

// brokenWriter stands for a fault in the gateway's own code.
type brokenWriter struct{ http.ResponseWriter }

func (brokenWriter) Write([]byte) (int, error) { panic("a broken writer") }

// A panic during a call must not keep the slot of its server.
func TestPanicFreesTheSlot(t *testing.T) {
	u := newUpstream(t, events(usualStream...))
	w := newWorld(t, setup{rows: strings.Replace(narrowRow, "queue: {calls: 3, wait: 1m}, ", "", 1), upstreams: []*modelServer{u}})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(streamed))
	request.Header.Set("Authorization", "Bearer "+studio)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the handler did not panic")
			}
		}()
		w.gateway.ServeHTTP(brokenWriter{httptest.NewRecorder()}, request)
	}()
	if got := await.Receive(t, "the next call", w.chatAs(t.Context(), rival, "next")); got.status == http.StatusTooManyRequests {
		t.Errorf("the next call got %d: %s", got.status, got.body)
	}
}

// While two accounts use all slots and queue more calls, a third account gets the next slot.
func TestThirdAccountGetsItsTurn(t *testing.T) {
	g := newGate(t)
	row := strings.Replace(narrowRow, "calls: 3", "calls: 9", 1)
	w := newWorld(t, setup{rows: strings.Replace(row, "concurrency: 1", "concurrency: 2", 1), upstreams: []*modelServer{g.modelServer}})
	for i, key := range []string{studio, rival, studio, rival, studio, rival} {
		w.chatAs(t.Context(), key, "held")
		if i < 2 {
			await.Receive(t, "a call that runs", g.entered)
		} else {
			w.queued(i - 1)
		}
	}
	w.chatAs(t.Context(), third, "third")
	w.queued(5)
	g.open <- true
	if next := await.Receive(t, "a call", g.entered); next != "third" {
		t.Errorf("the next call was %s", next)
	}
}

// A call does not wait beyond the row's limit or a shutdown. If the limit is raised, waiting calls start.
func TestQueueWaitIsLimited(t *testing.T) {
	t.Run("after its time", func(t *testing.T) {
		t.Parallel()
		g := newGate(t)
		w := newWorld(t, setup{rows: strings.Replace(narrowRow, "1m", "30ms", 1), upstreams: []*modelServer{g.modelServer}})
		w.chatAs(t.Context(), studio, "a0")
		await.Receive(t, "g.entered", g.entered)
		if got := await.Receive(t, "a1", w.chatAs(t.Context(), studio, "a1")); got.status != 429 ||
			!strings.Contains(got.body, "rate_limit_exceeded") {
			t.Errorf("got %+v", got)
		}
		w.queued(0)
	})
	t.Run("when the server stops", func(t *testing.T) {
		t.Parallel()
		g := newGate(t)
		w := newWorld(t, setup{rows: narrowRow, upstreams: []*modelServer{g.modelServer}})
		w.chatAs(t.Context(), studio, "a0")
		await.Receive(t, "g.entered", g.entered)
		waiting := w.chatAs(t.Context(), studio, "a1")
		w.queued(1)
		w.stop()
		if got := await.Receive(t, "waiting", waiting); got.err == nil && got.status != 503 {
			t.Errorf("got %+v", got)
		}
		w.queued(0)
	})
	t.Run("when the row takes more", func(t *testing.T) {
		t.Parallel()
		g := newGate(t)
		w := newWorld(t, setup{rows: narrowRow, upstreams: []*modelServer{g.modelServer}})
		w.chatAs(t.Context(), studio, "a0")
		await.Receive(t, "g.entered", g.entered)
		w.chatAs(t.Context(), studio, "a1")
		w.queued(1)
		w.load(strings.Replace(narrowRow, "concurrency: 1", "concurrency: 2", 1))
		if got := await.Receive(t, "g.entered", g.entered); got != "a1" {
			t.Errorf("%q arrived", got)
		}
	})
	t.Run("when the row has another server", func(t *testing.T) {
		t.Parallel()
		g, other := newGate(t), newUpstream(t, always(200, whole))
		w := newWorld(t, setup{rows: narrowRow, upstreams: []*modelServer{g.modelServer, other}})
		w.chatAs(t.Context(), studio, "a0")
		await.Receive(t, "g.entered", g.entered)
		waiting := w.chatAs(t.Context(), studio, "a1")
		w.queued(1)
		w.load(strings.Replace(narrowRow, "upstreams: [", "upstreams: [{name: second, url: URL1}, ", 1))
		if got := await.Receive(t, "waiting", waiting); got.status != 200 {
			t.Errorf("got %+v", got)
		}
	})
}

// Waiting calls get an error in their dialect. Calls that already have a server continue.
func TestDrainFailsQueuedCalls(t *testing.T) {
	g := newGate(t)
	row := strings.Replace(narrowRow, "calls: 3", "calls: 5", 1)
	w := newWorld(t, setup{rows: row, upstreams: []*modelServer{g.modelServer}})
	inHand := w.chatAs(t.Context(), studio, "a0")
	await.Receive(t, "g.entered", g.entered)
	post := func(path, body string) <-chan answer { got, _ := w.start(path, body); return got }
	const refusal = `{"error":{"message":"The gateway is shutting down, and no model server was free for the call.","type":"api_error",` +
		`"param":null,"code":"service_unavailable"}}`
	calls := []struct{ path, body, want string }{
		{"/v1/chat/completions", plain, refusal},
		{"/v1/chat/completions", streamed, refusal},
		{"/v1/completions", `{"model":"small","prompt":"one"}`, refusal},
		{"/v1/responses", `{"model":"small","input":"one","stream":true}`, refusal},
		{"/v1/messages", `{"model":"small","max_tokens":5,"messages":[{"role":"user","content":"one"}]}`, `"type":"overloaded_error"`},
	}
	var waiting []<-chan answer
	for i, c := range calls {
		waiting = append(waiting, post(c.path, c.body))
		w.queued(i + 1)
	}
	check := func(when string, i int, got answer) {
		t.Helper()
		if got.status != 503 || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, calls[i].want) {
			t.Errorf("%s, %s: got %+v", when, calls[i].path, got)
		}
	}
	w.gateway.Drain()
	for i := range calls {
		check("waiting", i, await.Receive(t, "waiting[i]", waiting[i]))
	}
	w.queued(0)
	for i, c := range calls {
		check("later", i, await.Receive(t, "post(c.path, c.body)", post(c.path, c.body)))
	}
	g.open <- true
	if got := await.Receive(t, "inHand", inHand); got.status != 200 {
		t.Errorf("the running call: got %+v", got)
	}
	w.gateway.Drain() // a second signal drains again
	next := w.chatAs(t.Context(), studio, "a1")
	g.open <- true
	if got := await.Receive(t, "next", next); got.status != 200 {
		t.Errorf("a call that need not wait: got %+v", got)
	}
}

// A call that waits because a busy server asked for a pause also gets an error on shutdown.
func TestDrainFailsCallsPausedByBusyServer(t *testing.T) {
	server := newUpstream(t, always(429, `{}`, "Retry-After: 50"))
	w := newWorld(t, setup{rows: narrowRow, upstreams: []*modelServer{server}})
	waiting := w.chatAs(t.Context(), studio, "a0")
	w.queued(1)
	w.gateway.Drain()
	if got := await.Receive(t, "waiting", waiting); got.status != 429 || got.header.Get("Retry-After") != "50" {
		t.Errorf("got %+v", got)
	}
	w.queued(0)
}

// A call that a busy server rejects waits for as long as the server asks. It is metered once.
func TestQueuedCallWaitsForBusyServer(t *testing.T) {
	refusals := 2
	server := newUpstream(t, nil)
	server.now(func(c *call) {
		server.mu.Lock()
		refusals--
		refuse := refusals >= 0
		server.mu.Unlock()
		if refuse {
			c.json(429, `{}`, "Retry-After: 1")
			return
		}
		c.json(200, whole)
	})
	w := newWorld(t, setup{rows: narrowRow, upstreams: []*modelServer{server}})
	if got := w.chat(plain); got.status != 200 || len(server.seen()) != 3 {
		t.Errorf("got %+v after %d calls", got, len(server.seen()))
	}
	w.recorded(1)
	if got := w.completed(1)[0]; got.Waited < 2*time.Second {
		t.Errorf("it waited %v", got.Waited)
	}
	server.now(always(429, `{}`, "Retry-After: 3600"))
	if got := w.chat(plain); got.status != 429 || got.header.Get("Retry-After") != "3600" {
		t.Errorf("over the longest wait: got %+v", got)
	}
}

// One account's calls use all slots of a busy server. Another account still gets its turn.
func TestBusyServerIsShared(t *testing.T) {
	slots := make(chan bool, 2)
	server := newUpstream(t, func(c *call) {
		select {
		case slots <- true:
			time.Sleep(50 * time.Millisecond)
			c.json(200, whole)
			<-slots
		default:
			c.json(429, `{}`)
		}
	})
	rows := strings.NewReplacer(", concurrency: 1", "", "calls: 3", "calls: 10").Replace(narrowRow)
	w := newWorld(t, setup{rows: rows, upstreams: []*modelServer{server}})
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			for ctx.Err() == nil {
				<-w.chatAs(ctx, studio, "many")
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	defer callers.Wait()
	defer stop()
	w.queued(10)
	for i := range 3 {
		if got := await.Receive(t, "a call", w.chatAs(t.Context(), rival, "one")); got.status != 200 {
			t.Errorf("call %d of another account: %+v", i, got)
		}
	}
}

// A call that can fall back to an idle row does not wait at full rows without a queue.
func TestFullRowsDoNotDelayFallbacks(t *testing.T) {
	rows := `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, fallbacks: [second, third], upstreams: [{name: first, url: URL0, concurrency: 1}]}
  - {id: second, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [{name: second, url: URL0, concurrency: 1}]}
  - {id: third, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [{name: third, url: URL1}]}
`
	g := newGate(t)
	w := newWorld(t, setup{rows: rows, upstreams: []*modelServer{g.modelServer, newUpstream(t, always(200, whole))}})
	for _, name := range []string{"a0", "a1"} {
		w.chatAs(t.Context(), studio, name)
		await.Receive(t, "g.entered", g.entered)
	}
	for _, body := range []string{plain, `{"models":["second","third"],` + plain[1:]} {
		if got := w.chat(body); got.status != 200 || got.header.Get("X-Served-Model") != "third" {
			t.Errorf("got %+v", got)
		}
	}
	for _, got := range w.completed(2) {
		if got.Waited > 0 {
			t.Errorf("waited for %v", got.Waited)
		}
	}
}

func TestQueueIsUsedBeforeFallbacks(t *testing.T) {
	rows := strings.Replace(narrowRow, "wait: 1m}", "wait: 20ms}, fallbacks: [other]", 1) +
		"  - {id: other, routes: [chat], context_length: 8192, max_output_length: 1000, upstreams: [{name: second, url: URL1}]}\n"
	g := newGate(t)
	w := newWorld(t, setup{rows: rows, upstreams: []*modelServer{g.modelServer, newUpstream(t, always(200, whole))}})
	w.chatAs(t.Context(), studio, "a0")
	await.Receive(t, "g.entered", g.entered)
	if got := w.chat(plain); got.status != 200 || got.header.Get("X-Served-Model") != "other" {
		t.Errorf("got %+v", got)
	}
	if got := w.completed(1)[0]; got.Waited == 0 || got.Model != "other" {
		t.Errorf("got %+v", got)
	}
}
