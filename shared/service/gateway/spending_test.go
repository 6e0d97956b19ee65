package gateway_test

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/testkit/sqlitetest"
)

var daily = budget.ID{Account: "studio", Period: budget.Day, Unit: budget.Cost}

// openBudgets returns a single machine's budgets with a daily limit, in billionths of the currency unit.
func openBudgets(t testing.TB, limit int64) (budget.Store, *boottime.Clock) {
	t.Helper()
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
	machine, err := boottime.Open()
	must(t, err)
	store := db.Budgets(machine)
	must(t, store.Set(t.Context(), audit.Operator(time.Now()), budget.Budget{ID: daily, Limit: limit}))
	return store, machine
}

// standing returns a stopped clock, because midnight might pass during the test.
func standing() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

// keep starts a budget manager and returns it with a function that stops it.
func keep(t testing.TB, store budget.Store, machine *boottime.Clock, now func() time.Time) (*budget.Manager, func()) {
	k := budget.NewManager(budget.ManagerConfig{
		Store: store, Machine: machine, Now: now, NewID: rand.Text, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx)
	}()
	stop := func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return k, stop
}

func usedOf(t testing.TB, store budget.Store, day time.Time) int64 {
	t.Helper()
	used, err := store.Used(t.Context(), []budget.Counter{budget.Budget{ID: daily}.Counter(day)})
	must(t, err)
	return used[0]
}

func (w *world) spent() (cost int64) {
	w.meter.mu.Lock()
	defer w.meter.mu.Unlock()
	for _, r := range w.meter.records {
		cost += r.Cost
	}
	return cost
}

// The caller gets the error in its dialect before any model server is called
// (docs/contract/budgets.md#over-a-budget).
func TestCallOverBudgetIsRejected(t *testing.T) {
	t.Parallel()
	const rows = `
  - {id: small, routes: [chat, completions, embeddings, rerank], context_length: 8192, max_output_length: 1000, price: {input: 1, output: 2}, upstreams: [{name: first, url: URL0, model: weights}]}
`
	store, machine := openBudgets(t, 100)
	k, _ := keep(t, store, machine, time.Now)
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{rows: rows, upstreams: []*modelServer{u}, budgets: k})
	const plainShape = `{"error":{"message":"The remaining account budget of cost for `
	const code = `"type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`
	for _, c := range []struct{ path, body, begins, ends string }{
		{"/v1/chat/completions", plain, plainShape, code},
		{"/v1/chat/completions", streamed, plainShape, code},
		{"/v1/completions", `{"model":"small","prompt":"hi"}`, plainShape, code},
		{"/v1/responses", `{"model":"small","input":"hi"}`, plainShape, code},
		{"/v1/embeddings", `{"model":"small","input":"hi"}`, plainShape, code},
		{"/v1/rerank", `{"model":"small","query":"hi","documents":["a","b"]}`, plainShape, code},
		{"/v1/messages", `{"model":"small","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
			`{"type":"error","error":{"type":"rate_limit_error","message":"The remaining account budget of cost for `,
			`"code":"insufficient_quota"},"request_id":`},
	} {
		a := w.post(c.path, c.body)
		seconds, _ := strconv.Atoi(a.header.Get("Retry-After"))
		if a.status != 429 || a.header.Get("X-Should-Retry") != "false" || seconds < 1 || seconds > 24*60*60 ||
			!strings.HasPrefix(a.body, c.begins) || !strings.Contains(a.body, c.ends) {
			t.Errorf("%s: %d, %v, %s", c.path, a.status, a.header, a.body)
		}
	}
	if a := w.post("/v1/messages/count_tokens", `{"model":"small","messages":[{"role":"user","content":"hi"}]}`); a.status != 200 {
		t.Errorf("counting tokens: %d %s", a.status, a.body)
	}
	if n := len(u.seen()); n > 0 {
		t.Errorf("the model server saw %d calls", n)
	}
}

// However a call ends, its metered cost is settled and the rest of the reservation is released.
func TestBudgetsAreSettled(t *testing.T) {
	t.Parallel()
	broken := func(c *call) {
		c.stream()
		c.write(eventStream(chunk("hello there"), chunk("again")))
		c.reset()
	}
	hanging := func(c *call) {
		c.stream()
		c.write(eventStream(chunk("hello there")))
		<-c.left
	}
	noUsage := strings.Replace(whole, `"usage":{`, `"us":{`, 1)
	// Images may have any size, so the entire context is reserved.
	picture := `{"model":"small","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://e/p"}}]}]}`
	seen := strings.Replace(whole, `"prompt_tokens":11`, `"prompt_tokens":8000`, 1)
	for _, c := range []struct {
		name, body string
		first      func(*call)
		leave      bool
		// want is the settled cost, or -1 if it is the metered cost.
		want int64
	}{
		{"a chat", plain, always(200, whole), false, 23_500},
		{"a stream", streamed, events(chunk("one"), last, used, done), false, 21_000},
		{"a stream without a usage", streamed, events(chunk("one"), last, done), false, -1},
		{"a truncated stream", streamed, broken, false, -1},
		{"a caller that disconnects", streamed, hanging, true, -1},
		{"an upstream without usage", plain, always(200, noUsage), false, -1},
		{"an upstream with impossible usage", plain,
			always(200, strings.Replace(whole, "11", "1100000", 1)), false, -1},
		{"a picture", picture, always(200, seen), false, 8_012_500},
		{"an upstream that rejects", plain, always(400, `{}`), false, 0},
		{"an upstream that fails", strings.Replace(plain, "{", `{"models":[],`, 1), always(500, `{}`), false, 0},
		{"a fallback", plain, always(503, `{}`), false, 1_210_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store, machine := openBudgets(t, 1e9)
			now := standing()
			k, stop := keep(t, store, machine, now)
			w := newWorld(t, setup{rows: pricedRows, budgets: k,
				upstreams: []*modelServer{newUpstream(t, c.first), newUpstream(t, always(200, whole))}})
			if c.leave {
				ctx, leave := context.WithCancel(t.Context())
				response := w.open(ctx, c.body)
				_, err := io.ReadFull(response.Body, make([]byte, 10))
				must(t, err)
				leave()
			} else {
				w.chat(c.body)
			}
			w.completed(1)
			w.stop()
			stop()
			got, want := usedOf(t, store, now()), c.want
			if want < 0 {
				if want = w.spent(); want == 0 {
					t.Error("a free call was metered")
				}
			}
			if got != want || got != w.spent() {
				t.Errorf("used %d and metered %d, want %d", got, w.spent(), want)
			}
		})
	}
}

func TestFallbackStaysWithinBudget(t *testing.T) {
	t.Parallel()
	store, machine := openBudgets(t, 5_000_000) // 1,000 tokens of the fallback row cost 20,000,000
	now := standing()
	k, stop := keep(t, store, machine, now)
	second := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{rows: pricedRows, budgets: k, upstreams: []*modelServer{newUpstream(t, always(503, `{}`)), second}})
	if a := w.chat(plain); a.status != 429 || !strings.Contains(a.body, "insufficient_quota") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := w.chat(strings.Replace(plain, "{", `{"max_tokens":5,`, 1)); a.status != 429 || len(second.seen()) > 0 {
		t.Errorf("%d %s", a.status, a.body) // rejected because of its prompt
	}
	stop()
	if n := usedOf(t, store, now()); n != 0 {
		t.Errorf("used %d", n)
	}
}

const oneRowPriced = `
  - {id: small, routes: [chat], context_length: 8192, max_output_length: 1000, price: {input: 1, output: 2}, upstreams: [{name: first, url: URL0, model: weights}]}
`

// The metered cost is settled as far as the limit permits, and nothing stays reserved.
func TestFalseUsageCannotExceedBudget(t *testing.T) {
	t.Parallel()
	lies := []string{
		`{"prompt_tokens":0,"completion_tokens":0}`, `{"prompt_tokens":1,"completion_tokens":1}`,
		`{"prompt_tokens":-11,"completion_tokens":-5}`, `{"prompt_tokens":11,"completion_tokens":-9223372036854775808}`,
		`{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`, `{"prompt_tokens":1e999}`,
		`null`, `{}`, `[1]`, `{"prompt_tokens":"11","completion_tokens":{}}`,
		`{"prompt_tokens":8192,"completion_tokens":1000}`, `{"prompt_tokens":8192,"completion_tokens":1000}`,
	}
	for _, c := range []struct {
		name  string
		limit int64
	}{{"with a large budget", 1e9}, {"with a small budget", 12_000_000}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store, machine := openBudgets(t, c.limit)
			w := (*world)(nil)
			k, stop := keep(t, store, machine, func() time.Time { return w.now() })
			var next atomic.Int64
			u := newUpstream(t, func(call *call) {
				call.json(200, `{"id":"c1","object":"chat.completion","created":7,"model":"weights","choices":[{"index":0,`+
					`"message":{"role":"assistant","content":"hello there"},"finish_reason":"stop"}],"usage":`+
					lies[next.Add(1)-1]+`}`)
			})
			w = newWorld(t, setup{rows: oneRowPriced, budgets: k, upstreams: []*modelServer{u}})
			w.stopClock()
			refused := 0
			for range lies {
				if a := w.chat(plain); a.status == 429 {
					refused++
				} else if a.status != 200 {
					t.Errorf("%d %s", a.status, a.body)
				}
				if n := usedOf(t, store, w.now()); n < 0 || n > c.limit {
					t.Fatalf("used %d of %d", n, c.limit)
				}
			}
			stop()
			metered, settled := w.spent(), usedOf(t, store, w.now())
			if metered < 0 || settled != min(metered, c.limit) || refused > 1 {
				t.Errorf("used %d of %d, metered %d; %d calls were rejected", settled, c.limit, metered, refused)
			}
		})
	}
}
