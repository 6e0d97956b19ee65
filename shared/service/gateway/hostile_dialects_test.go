package gateway_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// The dialects as sent by upstreams with native support.
var (
	inMessages = speech{
		`{"id":"m","type":"message","role":"assistant","model":"weights","content":[{"type":"text","text":"hello there"}],` +
			`"stop_reason":"end_turn","usage":{"input_tokens":11,"output_tokens":5}}`, "content", "input_tokens",
		func(text string) string {
			return fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text)
		},
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":11,"output_tokens":5}}`,
		`{"type":"message_stop"}`,
	}
	inResponses = speech{
		`{"id":"r","object":"response","model":"weights","error":null,"output":[{"type":"message","content":[{"type":"output_text",` +
			`"text":"hello there"}]}],"usage":{"input_tokens":11,"output_tokens":5}}`, "output", "input_tokens",
		func(text string) string {
			return fmt.Sprintf(`{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":%q}`, text)
		},
		`{"type":"response.output_text.done","text":"hello there"}`,
		`{"type":"response.in_progress","response":{"usage":{"input_tokens":11,"output_tokens":5}}}`,
		`{"type":"response.completed","response":{"model":"weights","output":[],"usage":{"input_tokens":11,"output_tokens":5}}}`,
	}
)

// oddChats are streams of valid JSON that otherwise makes no sense.
func oddChats() map[string]func(*call) {
	delta := func(text string) string { return `{"choices":[{"index":0,"delta":` + text + `}]}` }
	calls := func(text string) string { return delta(`{"tool_calls":` + text + `}`) }
	ended := []string{last, used, done}
	odd := func(data ...string) func(*call) { return events(append(data, ended...)...) }
	return map[string]func(*call){
		"null for everything": odd(`{"id":null,"object":null,"created":null,"model":null,"choices":null,"usage":null,"error":null}`,
			`{"choices":[null]}`, `{"choices":[{"index":null,"delta":null,"finish_reason":null}]}`,
			delta(`{"role":null,"content":null,"reasoning_content":null,"refusal":null,"tool_calls":null}`),
			calls(`[null,{"index":null,"id":null,"type":null,"function":null},{"function":{"name":null,"arguments":null}}]`)),
		"texts of other types": odd(delta(`{"content":5}`), delta(`{"content":{"text":"x"}}`), delta(`{"content":[5,{"text":"a"},{"text":[]}]}`),
			delta(`{"reasoning_content":true,"reasoning":["x"],"refusal":{}}`)),
		"calls of other types": odd(calls(`5`), calls(`{"a":1}`), calls(`["x",7,[]]`), calls(`[{"index":"one","id":7,"function":"f"}]`),
			calls(`[{"index":-3,"id":{},"function":{"name":[],"arguments":{"a":1}}}]`),
			calls(`[{"index":1e300,"function":{"name":"f","arguments":7}}]`)),
		"calls without ids":         odd(calls(`[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"function":{"name":"g"}}]`)),
		"calls with the same id":    odd(calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}]`)),
		"calls in reverse order":    odd(calls(`[{"index":2,"id":"c","function":{"name":"f","arguments":"{}"}}]`), calls(`[{"index":0,"id":"a","function":{"name":"g","arguments":""}}]`)),
		"calls with the same index": odd(calls(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`), calls(`[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]`)),
		"arguments without a call":  odd(calls(`[{"index":0,"function":{"arguments":"{\"a\":"}}]`), calls(`[{"index":0,"id":"late","function":{"name":"f","arguments":"1}"}}]`)),
		"a truncated escape":        odd(delta(`{"content":"\ud83d"}`), delta(`{"content":"\ude00"}`)),
		"text after the end":        events(chunk("a"), last, chunk("b"), used, done),
		"many choices":              odd(`{"choices":[{"index":3,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]}`),
		"an event of megabytes":     odd(chunk(strings.Repeat("x", 3<<20))),
		"names of the dialect":      text("event: message_stop\ndata: " + chunk("a") + "\n\nevent: response.completed\ndata: " + last + "\n\n" + eventStream(used, done)),
	}
}

// oddEvents are nonsensical streams like oddChats, for natively supported dialects.
func oddEvents(s speech) map[string]func(*call) {
	odd := func(data ...string) func(*call) { return events(append(data, s.chunk("a"), s.last, s.used, s.done)...) }
	return map[string]func(*call){
		"no type":                 odd(`{}`),
		"a null type":             odd(`{"type":null}`),
		"a type with line breaks": odd(`{"type":"ping\n\nevent: error"}`),
		"an unknown type":         odd(`{"type":"something.new","x":[null]}`),
		"null for everything": odd(`{"type":"message_start","message":null}`, `{"type":"content_block_start","index":null,"content_block":null}`,
			`{"type":"content_block_delta","index":null,"delta":null}`, `{"type":"message_delta","delta":null,"usage":null}`,
			`{"type":"response.created","response":null,"sequence_number":null}`, `{"type":"response.output_text.delta","delta":null}`),
		"other types": odd(`{"type":"message_start","message":[{"model":5}]}`, `{"type":"message_delta","usage":[1]}`,
			`{"type":"response.created","response":"x","sequence_number":1e300}`, `{"type":"content_block_delta","delta":{"text":{}}}`),
		"impossible usages": odd(`{"type":"message_start","message":{"usage":{"input_tokens":9e18,"output_tokens":-1}}}`,
			`{"type":"message_delta","usage":{"output_tokens":9223372036854775807}}`,
			`{"type":"message_delta","usage":{"input_tokens":1,"cache_read_input_tokens":9e9,"output_tokens":1}}`),
		"an error event":       events(s.chunk("a"), `{"type":"error","error":{"type":"overloaded_error","message":"secret"}}`),
		"a failed response":    events(s.chunk("a"), `{"type":"response.failed","response":{"error":{"message":"secret"},"usage":{"input_tokens":3,"output_tokens":1}}}`),
		"an event named error": text("event: error\ndata: {\"message\":\"secret\"}\n\n"),
		"chat":                 events(chunk("a"), last, used, done),
		"two ends":             events(s.chunk("a"), s.used, s.done, s.done, s.chunk("b")),
		"no end":               events(s.chunk("a"), s.last, s.used),
	}
}

// dialectCall is a call to an upstream that supports the dialect natively or supports only chat.
type dialectCall struct {
	path, row string
	stream    bool
}

func (c dialectCall) String() string {
	return fmt.Sprintf("%s of %s, stream %v", c.path, c.row, c.stream)
}

func (c dialectCall) body() string {
	rest := map[string]string{
		"/v1/messages":  `"max_tokens":50,"messages":[{"role":"user","content":"one two"}]`,
		"/v1/responses": `"input":"one two"`,
	}[c.path]
	return fmt.Sprintf(`{"model":%q,"stream":%v,%s}`, c.row, c.stream, rest)
}

func dialectCalls() (all []dialectCall) {
	for _, path := range []string{"/v1/messages", "/v1/responses"} {
		for _, row := range []string{"small", "itself"} {
			all = append(all, dialectCall{path, row, false}, dialectCall{path, row, true})
		}
	}
	return all
}

const dialectRows = `
  - {id: small, routes: [chat], context_length: 1048576, max_output_length: 1000, timeouts: {first_byte: 300ms, idle: 200ms}, upstreams: [{name: first, url: URL0, model: weights}]}
  - {id: itself, routes: [messages, responses], context_length: 1048576, max_output_length: 1000, timeouts: {first_byte: 300ms, idle: 200ms}, upstreams: [{name: second, url: URL0, model: weights}]}
`

// patientRows have timeouts that are long enough even on a busy machine.
var patientRows = strings.NewReplacer("300ms", "10m", "200ms", "10m").Replace(dialectRows)

func byPath(answers map[string]func(*call)) func(*call) {
	return func(c *call) {
		if answer := answers[c.path]; answer != nil {
			answer(c)
			return
		}
		c.json(http.StatusNotFound, "{}")
	}
}

var speeches = map[string]speech{"/v1/chat/completions": inChat, "/v1/messages": inMessages, "/v1/responses": inResponses}

func speaking(c *call) {
	s := speeches[c.path]
	if strings.Contains(c.body, `"stream":true`) {
		events(s.chunk("hello"), s.last, s.used, s.done)(c)
		return
	}
	c.json(200, s.whole)
}

// Whatever an upstream sends, the caller gets a response in its dialect's format and pays for the
// tokens that it received.
func TestDialectsSurviveHostileUpstreams(t *testing.T) {
	answers := map[string]map[string]func(*call){}
	for path, s := range speeches {
		all := hostile(s)
		if path == "/v1/chat/completions" {
			maps.Copy(all, oddChats())
		} else {
			maps.Copy(all, oddEvents(s))
		}
		for name, answer := range all {
			if answers[name] == nil {
				answers[name] = map[string]func(*call){}
			}
			answers[name][path] = answer
		}
	}
	for name, hostile := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t, byPath(hostile))
			w := newWorld(t, setup{rows: dialectRows, upstreams: []*modelServer{u}})
			shown := w.callAll(dialectCalls(), func(c dialectCall, a answer) { checkDialect(t, c, a) })
			w.checkMetered(t, shown)
			u.now(speaking)
			// On a busy machine, even a good response may be late and open a circuit breaker.
			w.eventually("good responses", func() bool {
				served := true
				w.wait(5 * time.Minute)
				w.callAll(dialectCalls(), func(c dialectCall, a answer) {
					checkDialect(t, c, a)
					served = served && a.status == http.StatusOK
				})
				return served
			})
		})
	}
}

func (w *world) callAll(calls []dialectCall, check func(dialectCall, answer)) (tokens int64) {
	w.t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, c := range calls {
		all.Go(func() {
			a := w.post(c.path, c.body())
			mu.Lock()
			defer mu.Unlock()
			check(c, a)
			said := a.header.Get("X-Tokens-Used")
			if said == "" {
				said = a.trailer.Get("X-Tokens-Used")
			}
			n, _ := strconv.ParseInt(said, 10, 64)
			tokens += n
		})
	}
	all.Wait()
	return tokens
}

// checkMetered checks that the metered usage equals the usage reported to callers.
func (w *world) checkMetered(t *testing.T, shown int64) {
	t.Helper()
	w.completed(len(dialectCalls()))
	w.meter.mu.Lock()
	defer w.meter.mu.Unlock()
	var sum int64
	for _, r := range w.meter.records {
		sum += r.PromptTokens + r.CompletionTokens
		if r.Requests != 1 || r.PromptTokens < 0 || r.CompletionTokens < 0 || r.PromptTokens+r.CompletionTokens > 1<<20+1000 {
			t.Errorf("recorded %+v", r)
		}
	}
	if sum != shown || len(w.meter.records) > len(dialectCalls()) {
		t.Errorf("%d tokens in %d records, and callers received %d", sum, len(w.meter.records), shown)
	}
}

func checkDialect(t *testing.T, c dialectCall, a answer) {
	t.Helper()
	switch {
	case a.err != nil || !utf8.ValidString(a.body) || a.header.Get("X-Request-Id") == "" || strings.Contains(a.body, "secret"):
		t.Errorf("%v: %d %v %.300q: %v", c, a.status, a.header, a.body, a.err)
	case strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream"):
		checkDialectStream(t, c, a)
	case a.status == 200:
		var answered struct {
			Content, Output []json.RawMessage
			Usage           map[string]json.RawMessage
		}
		err := json.Unmarshal([]byte(a.body), &answered)
		if err != nil || c.stream || answered.Usage == nil || (answered.Content != nil) != (c.path == "/v1/messages") ||
			(answered.Output != nil) != (c.path == "/v1/responses") || strings.Contains(a.body, `"model":"weights"`) {
			t.Errorf("%v: %.300s", c, a.body)
		}
	default:
		checkDialectError(t, c.path, a)
	}
}

func checkDialectError(t *testing.T, path string, a answer) {
	t.Helper()
	if !strings.HasPrefix(path, "/v1/messages") {
		checkError(t, a.status, []byte(a.body))
		return
	}
	var refusal struct {
		Type, RequestID string
		Error           struct{ Type, Message string }
	}
	err := json.Unmarshal([]byte(strings.Replace(a.body, "request_id", "requestid", 1)), &refusal)
	kinds := []string{"invalid_request_error", "authentication_error", "permission_error", "not_found_error", "request_too_large",
		"rate_limit_error", "api_error", "overloaded_error", "timeout_error"}
	if err != nil || a.status < 400 || a.status == 500 || a.status > 504 || refusal.Type != "error" || refusal.Error.Message == "" ||
		!slices.Contains(kinds, refusal.Error.Type) || refusal.RequestID != a.header.Get("X-Request-Id") {
		t.Errorf("%s: status %d with %.300s: %v", path, a.status, a.body, err)
	}
}

// checkDialectStream checks that a stream consists of named JSON events in order, and has exactly one end.
func checkDialectStream(t *testing.T, c dialectCall, a answer) {
	t.Helper()
	ends := map[string]string{"/v1/messages": "message_stop error", "/v1/responses": "response.completed response.incomplete response.failed error"}
	all, ended := strings.CutSuffix(a.body, "\n\n")
	if a.status != 200 || !ended {
		t.Errorf("%v: status %d, stream end %.300q", c, a.status, a.body[max(0, len(a.body)-300):])
		return
	}
	kinds := []string{}
	open := int64(-1)
	for event := range strings.SplitSeq(all, "\n\n") {
		if strings.HasPrefix(event, ":") {
			continue
		}
		head, data, _ := strings.Cut(event, "\ndata: ")
		object := gjson.Parse(data)
		kind := object.Get("type").Str
		if head != "event: "+kind || !json.Valid([]byte(data)) || strings.Contains(data, "\n") {
			t.Errorf("%v: invalid event %.300q", c, event)
			return
		}
		if number := object.Get("sequence_number"); c.row == "small" && c.path == "/v1/responses" && number.Int() != int64(len(kinds)) {
			t.Errorf("%v: event %d has the number %s", c, len(kinds), number.Raw)
		}
		kinds = append(kinds, kind)
		if c.row != "small" {
			continue
		}
		switch place := object.Get("index").Int(); kind {
		case "content_block_start":
			if open >= 0 {
				t.Errorf("%v: block %d starts within block %d", c, place, open)
			}
			open = place
		case "content_block_delta", "content_block_stop":
			if place != open {
				t.Errorf("%v: %s of block %d, not %d", c, kind, place, open)
			}
			if kind == "content_block_stop" {
				open = -1
			}
		case "message_stop":
			if open >= 0 {
				t.Errorf("%v: block %d does not end", c, open)
			}
		}
	}
	for i, kind := range kinds {
		if slices.Contains(strings.Fields(ends[c.path]), kind) != (i == len(kinds)-1) {
			t.Errorf("%v: the events are %.500q", c, kinds)
			return
		}
	}
}
