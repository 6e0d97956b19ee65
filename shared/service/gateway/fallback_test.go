package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"cutroom/shared/domain/credential"
)

// chain is a model with two fallbacks. The last one supports only chat.
const chain = `
  - {id: small, routes: [chat, messages], context_length: 1000, max_output_length: 100, fallbacks: [second, third], upstreams: [{name: first, url: URL0, model: weights, concurrency: 1}]}
  - {id: second, routes: [chat, completions], context_length: 2000, max_output_length: 50, fallbacks: [small], upstreams: [{name: second, url: URL1, model: weights}]}
  - {id: third, routes: [chat], context_length: 4096, max_output_length: 100, upstreams: [{name: third, url: URL2, model: weights}]}
  - {id: texts, routes: [completions], context_length: 4096, max_output_length: 100, upstreams: [{name: fourth, url: URL2, model: weights}]}
  - {id: kept, placeholder: true}
`

const context400 = `{"error":{"message":"This model's maximum context length is 1000 tokens.","code":400}}`

// If all servers of a row are down or full, or the prompt is too long for the row, the next row
// serves the call. That row is metered and named in a header.
func TestCallsFallBackToOtherRows(t *testing.T) {
	long := strings.Replace(plain, "one two", strings.Repeat("word ", 60_000), 1)
	for _, c := range []struct {
		name          string
		first, second func(*call)
		body, served  string
		status        int
	}{
		{"the first row serves", always(200, whole), always(200, whole), plain, "small", 200},
		{"503", always(503, `{}`), always(200, whole), plain, "second", 200},
		{"429", always(429, `{}`, "Retry-After: 9"), always(200, whole), plain, "second", 200},
		{"a reset", func(c *call) { c.reset() }, always(200, whole), plain, "second", 200},
		{"both are down", always(503, `{}`), always(429, `{}`), plain, "third", 200},
		{"too long for the server", always(400, context400), always(200, whole), plain, "second", 200},
		{"too long for the row", always(200, whole), always(400, context400), long, "third", 200},
		{"a bad request", always(400, `{"error":{"message":"no"}}`), always(200, whole), plain, "", 400},
		{"a broken server", always(500, `{}`), always(200, whole), plain, "", 502},
		{"the caller's list", always(503, `{}`), always(200, whole), `{"models":["third"],` + plain[1:], "third", 200},
		{"a list that contains the model", always(503, `{}`), always(503, `{}`), `{"models":["small","second","small"],` + plain[1:], "", 502},
		{"a list of only the model", always(503, `{}`), always(200, whole), `{"models":["small"],` + plain[1:], "", 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			third := newUpstream(t, always(200, whole))
			w := newWorld(t, setup{rows: chain, upstreams: []*modelServer{newUpstream(t, c.first), newUpstream(t, c.second), third}})
			got := w.chat(c.body)
			if got.status != c.status || got.header.Get("X-Served-Model") != c.served {
				t.Errorf("got %d %.300s, served by %q, want %d by %q", got.status, got.body, got.header.Get("X-Served-Model"), c.status, c.served)
			}
			if got.status != 200 {
				return
			}
			if !strings.Contains(got.body, `"model":"small"`) {
				t.Errorf("the response names another model: %s", got.body)
			}
			if used := w.recorded(1)[0]; used.Model != c.served {
				t.Errorf("%s was metered", used.Model)
			}
			for _, seen := range third.seen() {
				if strings.Contains(seen.body, `"models"`) {
					t.Errorf("the list was forwarded: %s", seen.body)
				}
			}
		})
	}
}

// A stream can fall back only before its first chunk. The response keeps the caller's dialect.
func TestStreamsAndDialectsFallBack(t *testing.T) {
	first, third := newUpstream(t, always(503, `{}`)), newUpstream(t, events(chunk("one"), last, used, done))
	second := newUpstream(t, always(503, `{}`))
	w := newWorld(t, setup{rows: chain, upstreams: []*modelServer{first, second, third}})
	got := w.chat(streamed)
	if got.status != 200 || got.header.Get("X-Served-Model") != "third" || strings.Count(got.body, "data: ") != 3 ||
		strings.Contains(got.body, "third") {
		t.Errorf("got %+v", got)
	}
	message := `{"model":"small","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	got = w.do(w.request(t.Context(), http.MethodPost, "/v1/messages", studio, strings.NewReader(message)))
	if got.status != 200 || got.header.Get("X-Served-Model") != "third" || !strings.Contains(got.body, "event: message_stop") ||
		!strings.Contains(got.body, `"model":"small"`) {
		t.Errorf("got %+v", got)
	}
	first.now(func(c *call) {
		c.stream()
		c.write("data: " + chunk("one") + "\n\n")
		c.reset()
	})
	w.wait(1 << 40)
	before := len(third.seen())
	got = w.chat(streamed)
	if got.header.Get("X-Served-Model") != "small" || !strings.Contains(got.body, `"error"`) || len(third.seen()) != before {
		t.Errorf("after a chunk: got %+v", got)
	}
	for _, r := range w.recorded(3)[:2] {
		if r.Model != "third" {
			t.Errorf("%s was metered", r.Model)
		}
	}
}

// The model small falls back to the model second, which falls back to small.
func TestFallbackCyclesEnd(t *testing.T) {
	down := newUpstream(t, always(503, `{}`))
	w := newWorld(t, setup{rows: chain, upstreams: []*modelServer{down, down, down}})
	if got := w.chat(strings.Replace(plain, "small", "second", 1)); got.status != 502 || got.header.Get("X-Served-Model") != "" {
		t.Errorf("got %+v", got)
	}
	w.completed(1)
	if got := w.outcomes(); len(got) != 2 {
		t.Errorf("the attempts were %v", got)
	}
}

// A fallback that a caller lists must exist, support the route and be allowed. Forbidden fallbacks
// from the configuration are skipped.
func TestForbiddenModelsAreNotUsed(t *testing.T) {
	down, up := newUpstream(t, always(503, `{}`)), newUpstream(t, always(200, whole))
	w := newWorld(t, setup{rows: chain, upstreams: []*modelServer{down, up, up}})
	token := w.token(credential.Scope{Models: []string{"small", "third"}})
	for _, c := range []struct {
		models, key string
		status      int
		code, param string
	}{
		{`"second"`, studio, 400, "invalid_type", "models"},
		{`{}`, studio, 400, "invalid_type", "models"},
		{`[]`, studio, 400, "empty_array", "models"},
		{`[7]`, studio, 400, "invalid_type", "models[0]"},
		{`["second",""]`, studio, 400, "invalid_value", "models[1]"},
		{`["a","b","c","d","e","f","g","h","i"]`, studio, 400, "array_above_max_length", "models"},
		{`["second","nobody"]`, studio, 404, "model_not_found", "models[1]"},
		{`["kept"]`, studio, 404, "model_not_found", "models[0]"},
		{`["texts"]`, studio, 404, "model_not_found", "models[0]"},
		{`["third","second"]`, token, 403, "model_not_allowed", "models[1]"},
		{`null`, studio, 200, "", ""},
		{`["third"]`, token, 200, "", ""},
	} {
		body := `{"models":` + c.models + `,` + plain[1:]
		got := w.do(w.request(t.Context(), http.MethodPost, "/v1/chat/completions", c.key, strings.NewReader(body)))
		if got.status != c.status || c.code != "" && (!strings.Contains(got.body, `"`+c.code+`"`) ||
			!strings.Contains(got.body, `"`+c.param+`"`)) {
			t.Errorf("%s: got %d %s", c.models, got.status, got.body)
		}
	}
	got := w.do(w.request(t.Context(), http.MethodPost, "/v1/chat/completions", token, strings.NewReader(plain)))
	if got.status != 200 || got.header.Get("X-Served-Model") != "third" {
		t.Errorf("a token for the first row only: got %+v", got)
	}
}
