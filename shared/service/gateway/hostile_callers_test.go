package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/await"
)

// richRequests have all those fields of a dialect that have equivalents in chat.
var richRequests = map[string]string{
	"/v1/messages": `{"model":"ROW","max_tokens":50,"system":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"look","citations":[]},` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"image","source":{"type":"url","url":"https://a/b"}},` +
		`{"type":"document","title":"t","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}},` +
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"well"},` +
		`{"type":"tool_use","id":"t1","name":"f","input":{"x":1}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no"},` +
		`{"type":"image","source":{"type":"url","url":"u"}}]},{"type":"tool_result","tool_use_id":"t2","content":"c"}]},{"role":"user","content":"go"}],` +
		`"tools":[{"type":"custom","name":"f","description":"d","input_schema":{"type":"object"},"strict":true}],` +
		`"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},"stop_sequences":["s"],"temperature":1,"top_p":0.5,"top_k":3,` +
		`"thinking":{"type":"enabled","budget_tokens":2000},"metadata":{"user_id":"u"},"service_tier":"auto",` +
		`"output_config":{"effort":"low","format":{"type":"json_schema","schema":{}}},` +
		`"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"stream":false,"seed":5}`,
	"/v1/responses": `{"model":"ROW","instructions":"be kind","input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"d"}]},` +
		`{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:x","detail":"low"},` +
		`{"type":"input_file","filename":"f","file_data":"data:y"}]},{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"s"}],` +
		`"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":null},{"type":"message","id":"x","status":"completed","role":"assistant",` +
		`"content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"no"}]},` +
		`{"type":"function_call","id":"fc","call_id":"c1","name":"f","namespace":"n","arguments":"{}","status":"completed"},` +
		`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"data:z"}]},` +
		`{"type":"function_call_output","call_id":"c2","output":"ok"}],"max_output_tokens":50,"tools":[{"type":"function","name":"f","description":"d",` +
		`"parameters":{"type":"object"},"strict":true},{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"g","parameters":{}}]}],` +
		`"tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":true,"reasoning":{"effort":"high","summary":"auto"},` +
		`"include":["reasoning.encrypted_content"],"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","schema":{},"strict":true}},` +
		`"temperature":1,"top_p":0.5,"truncation":"disabled","top_logprobs":0,"max_tool_calls":3,"store":false,"background":false,"metadata":{"a":"b"},` +
		`"client_metadata":{},"prompt_cache_key":"k","safety_identifier":"i","service_tier":"auto","user":"u","stream_options":{"include_obfuscation":false},"seed":5}`,
}

var wrongValues = []string{`null`, `true`, `-1`, `1e999`, `""`, `"\u0000"`, `"x"`, `[]`, `[null]`, `[[5]]`, `{}`, `{"type":5}`, `{"type":"text","text":null}`}

// replaced yields each variant of a request that has one value replaced by an invalid one. With every > 1, it yields
// every such variant only.
func replaced(t *testing.T, body string, every int, yield func(string)) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	var tree any
	must(t, decoder.Decode(&tree))
	said := func() string {
		text, err := json.Marshal(tree)
		must(t, err)
		return string(text)
	}
	const mark = `"\u0001REPLACED"`
	n := 0
	var walk func(value any, set func(any))
	walk = func(value any, set func(any)) {
		if set != nil {
			set("\x01REPLACED")
			marked := said()
			set(value)
			for _, wrong := range wrongValues {
				if n++; n%every == 0 {
					yield(strings.Replace(marked, mark, wrong, 1))
				}
			}
		}
		switch value := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				walk(value[name], func(other any) { value[name] = other })
			}
		case []any:
			for i, inner := range value {
				walk(inner, func(other any) { value[i] = other })
			}
		}
	}
	walk(tree, nil)
}

// A request with an invalid value is either served or rejected in the dialect's format. An upstream
// that supports only chat gets only chat requests.
func TestWrongTypesAreRejected(t *testing.T) {
	for path, rich := range richRequests {
		for _, row := range []string{"small", "itself"} {
			t.Run(path+" of "+row, func(t *testing.T) {
				t.Parallel()
				u := newUpstream(t, speaking)
				w := newWorld(t, setup{rows: patientRows, upstreams: []*modelServer{u}})
				body := strings.Replace(rich, "ROW", row, 1)
				if a := w.post(path, body); a.status != 200 {
					t.Fatalf("%d %s", a.status, a.body)
				}
				served, refused := 0, 0
				every := map[string]int{"small": 1, "itself": 4}[row] // a native request is forwarded almost unread
				replaced(t, body, every, func(sent string) {
					a := w.post(path, sent)
					switch {
					case a.status == 200:
						served++
					case a.status != 400 && a.status != 404:
						t.Errorf("%d %s for %s", a.status, a.body, sent)
					default:
						refused++
						checkDialectError(t, path, a)
					}
				})
				if served == 0 || refused == 0 {
					t.Errorf("%d were served, %d rejected", served, refused)
				}
				for _, r := range u.seen() {
					var chat struct{ Messages []struct{ Role string } }
					if err := json.Unmarshal([]byte(r.body), &chat); err != nil {
						t.Errorf("the upstream got %s: %v", r.body, err)
					}
				}
			})
		}
	}
}

func TestHostileDialectRequestsAreRejected(t *testing.T) {
	u := newUpstream(t, speaking)
	w := newWorld(t, setup{rows: patientRows, upstreams: []*modelServer{u}})
	many := func(n int, piece string) string { return strings.TrimSuffix(strings.Repeat(piece+",", n), ",") }
	for name, member := range map[string]string{
		"nothing": ``, "a depth": `"x":` + strings.Repeat("[", 200_000), "a depth that ends": `"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"deep nesting":     `"input":` + strings.Repeat(`[`, 900) + strings.Repeat(`]`, 900) + `,"messages":` + strings.Repeat(`[`, 900) + strings.Repeat(`]`, 900),
		"many nulls":       `"input":[` + many(1<<16, "null") + `],"messages":[` + many(1<<16, "null") + `]`,
		"many objects":     `"input":[` + many(1<<14, "{}") + `],"messages":[` + many(1<<14, "{}") + `]`,
		"many members":     `"x":{` + many(1<<18+1, `"a":1`) + `}`,
		"a duplicate name": `"stream":false,"stream":true`, "a name twice within": `"tools":[{"name":"a","name":"b"}]`,
		"a duplicate escaped name": `"stream":false,"\u0073tream":true`,
		"a name in another case":   `"Stream":true,"STREAM":false`,
		"a truncated character":    `"user":"\ud83d"`, "the other half": `"instructions":"\ude00","system":"\ude00"`, "a name of half a character": `"\ud83d":1`,
		"invalid UTF-8": "\"user\":\"\xff\xfe\"", "a NUL": "\"user\":\"a\x00b\"", "a line break": "\"user\":\"a\nb\"",
		"a huge number": `"temperature":` + strings.Repeat("9", 100_000), "a number below 0": `"max_tokens":-1,"max_output_tokens":-1`,
		"an exponent": `"max_tokens":1e9999,"max_output_tokens":1e9999`, "no number": `"temperature":NaN`, "a plus": `"top_p":+1`,
		"a trailing comma": `"user":"u",`, "a comment": `/* x */"user":"u"`, "more after it": `"user":"u"}{"model":"small"`, "a mark of order": "\ufeff",
		"a long name":  `"` + strings.Repeat("n", 1<<20) + `":1`,
		"a long model": `"model":"` + strings.Repeat("m", 1<<20) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			for path := range richRequests {
				for _, row := range []string{"small", "itself"} {
					a := w.post(path, fmt.Sprintf(`{"model":%q%s}`, row, ","+member))
					if row == "itself" && (name == "many nulls" || name == "many objects") && a.status == 200 {
						continue // a server with native support decides for itself
					}
					if a.err != nil || a.status < 400 || a.status >= 500 || len(a.body) > 64<<10 {
						t.Errorf("%s of %s: %d %.300s: %v", path, row, a.status, a.body, a.err)
					}
					checkDialectError(t, path, a)
				}
			}
		})
	}
	for _, r := range u.seen() {
		if r.path == "/v1/chat/completions" {
			t.Errorf("a call reached the upstream: %.300s", r.body)
		}
	}
}

// A caller that uses a dialect may disconnect at any point. It pays for the tokens generated so far.
func TestDisconnectedDialectCallerIsBilled(t *testing.T) {
	for _, made := range dialectCalls() {
		points := []string{"before the header"}
		if made.stream {
			points = append(points, "before the first event", "after an event")
		}
		for _, point := range points {
			t.Run(fmt.Sprint(made, ", ", point), func(t *testing.T) {
				t.Parallel()
				s := speeches[made.path]
				if made.row == "small" {
					s = inChat
				}
				entered, left := make(chan bool, 1), make(chan bool, 1)
				w := newWorld(t, setup{rows: patientRows, upstreams: []*modelServer{newUpstream(t, func(c *call) {
					if point != "before the header" {
						c.stream()
					}
					if point == "after an event" {
						c.write(eventStream(s.chunk("one two three")))
					}
					entered <- true
					<-c.left
					left <- true
				})}})
				ctx, leave := context.WithCancel(t.Context())
				ended := make(chan bool)
				go func() {
					defer close(ended)
					response, err := client.Do(w.request(ctx, http.MethodPost, made.path, studio, strings.NewReader(made.body())))
					if err != nil {
						return
					}
					defer response.Body.Close()
					lines := bufio.NewScanner(response.Body)
					for lines.Scan() && !strings.Contains(lines.Text(), "one two three") {
					}
					leave()
				}()
				await.Receive(t, "entered", entered)
				if point != "after an event" {
					leave()
				}
				select {
				case <-left:
				case <-time.After(await.Max):
					t.Fatal("the upstream call did not end")
				}
				await.Receive(t, "ended", ended)
				got := w.recorded(1)[0].Counts
				words := map[bool]int64{true: 3}[point == "after an event"]
				if got.CompletionTokens != words || got.PromptTokens == 0 || got.Estimated != 1 || got.Requests != 1 {
					t.Errorf("recorded %+v", got)
				}
				if o := w.completed(1)[0]; o.Status != 499 || (o.Counts != usage.Counts{}) && o.Counts != got {
					t.Errorf("observed %+v", o)
				}
			})
		}
	}
}

func TestShutdownIsReportedInEveryDialect(t *testing.T) {
	for _, made := range dialectCalls() {
		t.Run(made.String(), func(t *testing.T) {
			t.Parallel()
			s := speeches[made.path]
			if made.row == "small" {
				s = inChat
			}
			entered := make(chan bool, 1)
			w := newWorld(t, setup{rows: patientRows, upstreams: []*modelServer{newUpstream(t, func(c *call) {
				if made.stream {
					c.stream()
					c.write(eventStream(s.chunk("one two")))
				}
				entered <- true
				<-c.left
			})}})
			got, started := w.start(made.path, made.body())
			await.Receive(t, "entered", entered)
			if made.stream {
				await.Receive(t, "started", started)
			}
			w.stop()
			a := await.Receive(t, "got", got)
			checkDialect(t, made, a)
			if !strings.Contains(a.body, "The gateway is shutting down") || made.stream != (a.status == 200) || !made.stream && a.status != 503 {
				t.Errorf("%d %s: %v", a.status, a.body, a.err)
			}
		})
	}
}
