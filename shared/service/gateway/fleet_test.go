package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fleetRow is a model on servers that come and go.
const fleetRow = `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, timeouts: {first_byte: 5s}, queue: {calls: 200, wait: 1m}, upstreams: [{name: fleet, url: "srv+http://models.internal", model: weights, concurrency: 6}]}
`

// Ways in which a server of a fleet behaves. What it answers well says which call it
// answered.
var (
	busySoon = always(503, `{}`, "Retry-After: 1")
	busyNow  = always(429, `{"error":{"message":"full"}}`, "Retry-After: 1")
	hangs    = func(c *call) { <-c.left }
	endsHead = func(c *call) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Ty") }
	resets   = func(c *call) { c.reset() }
	lies     = always(200, `{"error":{"message":"out of memory"}}`)
	nonsense = always(200, `<html>starting</html>`)
	liesLate = func(c *call) {
		if !strings.Contains(c.body, `"stream":true`) {
			lies(c)
			return
		}
		c.stream()
		c.write(": ready\n\ndata: {\"error\":{\"message\":\"out of memory\"}}\n\n")
		c.end()
	}
)

// well answers as it should, and counts.
func well(answered *atomic.Int64) func(*call) {
	return func(c *call) {
		answered.Add(1)
		if strings.Contains(c.body, `"stream":true`) {
			events(chunk("one"), last, used, done)(c)
			return
		}
		c.json(200, whole)
	}
}

// While servers of a fleet come and go, are full, and say that they work and do not,
// every call is answered that one of them can answer, and metered once.
func TestFleet(t *testing.T) {
	const callers, each = 10, 16
	var answered, finished atomic.Int64
	good := well(&answered)
	var fleet []*modelServer
	for range 6 {
		fleet = append(fleet, newUpstream(t, good))
	}
	known := &names{}
	known.set(nil, fleet...)
	w := newWorld(t, setup{rows: fleetRow, resolver: known})
	// At any time no more than two servers fail calls in ways that take their tries;
	// the last one always works.
	stages := []func(){
		func() { fleet[0].now(hangs); fleet[1].now(lies) },
		func() { fleet[4].now(busySoon); known.set(nil, append(fleet[:2:2], fleet[3:]...)...) },
		func() { fleet[2].listener.Close(); fleet[3].listener.Close(); fleet[0].now(endsHead) },
		func() { known.set(nil, fleet[0], fleet[1], fleet[4], fleet[5]); fleet[1].now(liesLate) },
		func() { fleet[4].now(busyNow); fleet[0].now(resets); fleet[1].now(nonsense) },
		func() {
			fleet = append(fleet, newUpstream(t, good), newUpstream(t, good))
			known.set(nil, fleet[0], fleet[1], fleet[4], fleet[5], fleet[6], fleet[7])
		},
		func() { fleet[0].now(good); fleet[1].now(hangs); fleet[4].now(good) },
		func() { known.set(fmt.Errorf("the resolver is down")); fleet[1].now(good) },
	}
	turns := make(chan func(), len(stages))
	for _, stage := range stages {
		turns <- stage
	}
	var mu sync.Mutex
	next := func() {
		mu.Lock()
		defer mu.Unlock()
		select {
		case stage := <-turns:
			stage()
			w.wait(15 * time.Second) // names are looked up again
		default:
		}
	}
	var group sync.WaitGroup
	for caller := range callers {
		key, body := studio, plain
		if caller%2 == 1 {
			key = rival
		}
		if caller%3 == 1 {
			body = asking
		}
		group.Go(func() {
			for i := range each {
				text := strings.Replace(body, "one two", fmt.Sprintf("caller %d conversation %d", caller, i/4), 1)
				got := w.do(w.request(t.Context(), http.MethodPost, "/v1/chat/completions", key, strings.NewReader(text)))
				if got.status != 200 || got.err != nil || !strings.Contains(got.body, `"total_tokens":16`) || strings.Contains(got.body, `"error"`) {
					t.Errorf("caller %d, call %d: got %d %s %v", caller, i, got.status, got.body, got.err)
				}
				if finished.Add(1)%(callers*each/int64(len(stages)+2)) == 0 {
					next()
				}
			}
		})
	}
	group.Wait()
	if left := len(turns); left > 0 {
		t.Errorf("%d stages were not reached", left)
	}
	metered := map[string]int{}
	for _, r := range w.recorded(callers * each) {
		metered[r.Account]++
		if r.Counts.PromptTokens != 11 || r.Counts.CompletionTokens != 5 || r.Counts.Requests != 1 {
			t.Errorf("a record says %+v", r.Counts)
		}
	}
	if metered["studio"] != callers*each/2 || metered["rival"] != callers*each/2 {
		t.Errorf("metered were %v", metered)
	}
	// On a busy machine a good answer may come too late, and is generated again.
	if got := answered.Load(); got < callers*each {
		t.Errorf("the servers generated %d answers for %d calls", got, callers*each)
	}
	w.eventually("no calls under way", func() bool { return w.gateway.Health()[0].InFlight == 0 && w.gateway.Queues()[0].Waiting == 0 })
	outcomes := map[string]int{}
	for _, o := range w.outcomes() {
		outcomes[o]++
	}
	t.Logf("the attempts were %v", outcomes)
}
