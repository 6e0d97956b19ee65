package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
)

func (w *world) post(path, body string, fields ...string) answer {
	w.t.Helper()
	return w.do(w.request(w.t.Context(), http.MethodPost, path, studio, strings.NewReader(body), fields...))
}

func (a answer) withoutID() string {
	return strings.ReplaceAll(a.body, a.header.Get("X-Request-Id"), "ID")
}

const nativeRow = `
  - {id: small, routes: [responses, messages, count_tokens, embeddings, rerank, score], context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL0, model: weights}]}
`

func TestNativeRoutesAreForwarded(t *testing.T) {
	for _, c := range []struct {
		name, path, sent, forwarded, answered, want string
		used                                        usage.Counts
	}{
		{
			"messages", "/v1/messages",
			`{"model": "small", "max_tokens": 5000, "messages": [{"role":"user","content":"hi"}], "system":null, "top_k": 5}`,
			`{"model": "weights", "max_tokens": 1000, "messages": [{"role":"user","content":"hi"}], "system":null, "top_k": 5}`,
			`{"id":"m","type":"message","model":"weights","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":4,"cache_read_input_tokens":3,"output_tokens":2}}`,
			`{"id":"m","type":"message","model":"small","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":4,"cache_read_input_tokens":3,"output_tokens":2}}`,
			usage.Counts{Requests: 1, PromptTokens: 7, CompletionTokens: 2, CachedTokens: 3},
		},
		{
			"messages without a usage", "/v1/messages",
			`{"model":"small","max_tokens":5,"messages":[{"role":"user","content":"one two three"}]}`,
			`{"model":"weights","max_tokens":5,"messages":[{"role":"user","content":"one two three"}]}`,
			`{"model":"weights","content":[{"type":"text","text":"a b"},{"type":"tool_use","input":{"x":1}}]}`,
			`{"usage":{"input_tokens":7,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2},` +
				`"model":"small","content":[{"type":"text","text":"a b"},{"type":"tool_use","input":{"x":1}}]}`,
			usage.Counts{Requests: 1, PromptTokens: 7, CompletionTokens: 2, Estimated: 1},
		},
		{
			"count_tokens", "/v1/messages/count_tokens", `{"model":"small","messages":[{"role":"user","content":"hi"}]}`,
			`{"model":"weights","messages":[{"role":"user","content":"hi"}]}`, `{"input_tokens":12}`, `{"input_tokens":12}`,
			usage.Counts{},
		},
		{
			"responses", "/v1/responses", `{"model":"small","input":"hi","max_output_tokens":5000}`,
			`{"model":"weights","input":"hi","max_output_tokens":1000,"store":false}`,
			`{"id":"r","model":"weights","error":null,"output":[],"usage":{"input_tokens":4,"input_tokens_details":{"cached_tokens":1},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}}`,
			`{"id":"r","model":"small","error":null,"output":[],"usage":{"input_tokens":4,"input_tokens_details":{"cached_tokens":1},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}}`,
			usage.Counts{Requests: 1, PromptTokens: 4, CompletionTokens: 2, CachedTokens: 1, ReasoningTokens: 1},
		},
		{
			"embeddings", "/v1/embeddings", `{"model":"small","input":["a","b"],"dimensions":2}`,
			`{"model":"weights","input":["a","b"],"dimensions":2}`,
			`{"object":"list","model":"weights","data":[{"embedding":[1,2]}],"usage":{"prompt_tokens":9,"total_tokens":9}}`,
			`{"object":"list","model":"small","data":[{"embedding":[1,2]}],"usage":{"prompt_tokens":9,"total_tokens":9}}`,
			usage.Counts{Requests: 1, PromptTokens: 9},
		},
		{
			"rerank", "/v1/rerank", `{"model":"small","query":"q","documents":["a b",{"text":"c"}],"top_n":1}`,
			`{"model":"weights","query":"q","documents":["a b",{"text":"c"}],"top_n":1}`,
			`{"model":"weights","results":[{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":6}}`,
			`{"model":"small","results":[{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":6}}`,
			usage.Counts{Requests: 1, PromptTokens: 6},
		},
		{
			"score", "/v1/score", `{"model":"small","text_1":"q","text_2":["a b","c"]}`,
			`{"model":"weights","text_1":"q","text_2":["a b","c"]}`,
			`{"model":"weights","data":[{"index":0,"score":0.5}]}`,
			`{"usage":{"prompt_tokens":4,"total_tokens":4},"model":"small","data":[{"index":0,"score":0.5}]}`,
			usage.Counts{Requests: 1, PromptTokens: 4, Estimated: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := newUpstream(t, always(200, c.answered))
			w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: nativeRow})
			a := w.post(c.path, c.sent)
			if a.status != 200 || a.body != c.want {
				t.Fatalf("%d\n%s, want\n%s", a.status, a.body, c.want)
			}
			if got := u.seen()[0]; got.body != c.forwarded || got.path != c.path {
				t.Errorf("%s got %s\nwant %s", got.path, got.body, c.forwarded)
			}
			if c.used == (usage.Counts{}) {
				w.recorded(0)
			} else if got := w.recorded(1)[0]; got.Counts != c.used {
				t.Errorf("recorded %+v, want %+v", got.Counts, c.used)
			}
		})
	}
}

func typed(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		var event struct{ Type string }
		if err := json.Unmarshal([]byte(d), &event); err != nil {
			panic(err)
		}
		b.WriteString("event: " + event.Type + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

func writing(text string) func(*call) {
	return func(c *call) {
		c.stream()
		c.write(text)
		c.end()
	}
}

var (
	messageEvents = []string{
		`{"type":"message_start","message":{"id":"m","model":"weights","usage":{"input_tokens":9,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello there"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`,
		`{"type":"message_stop"}`,
	}
	responseEvents = []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"r","model":"weights","output":[],"usage":null}}`,
		`{"type":"response.output_text.delta","sequence_number":1,"delta":"hello there"}`,
		`{"type":"response.completed","sequence_number":2,"response":{"id":"r","model":"weights","output":[],"usage":{"input_tokens":9,"output_tokens":5}}}`,
	}
)

func TestNativeStreamsAreForwarded(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		events           []string
	}{
		{"messages", "/v1/messages", `{"model":"small","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"one"}]}`, messageEvents},
		{"responses", "/v1/responses", `{"model":"small","stream":true,"input":"one"}`, responseEvents},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := newUpstream(t, writing(typed(c.events...)))
			w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: nativeRow})
			a := w.post(c.path, c.body)
			if want := strings.ReplaceAll(typed(c.events...), "weights", "small"); a.status != 200 || a.body != want {
				t.Fatalf("%d\n%s, want\n%s", a.status, a.body, want)
			}
			if got := w.recorded(1)[0].Counts; got != (usage.Counts{Requests: 1, PromptTokens: 9, CompletionTokens: 5}) {
				t.Errorf("recorded %+v", got)
			}
			// If no event reports the usage, the gateway counts tokens. If the last event is
			// missing, the stream is broken.
			u.now(writing(typed(c.events[:len(c.events)-2]...)))
			a = w.post(c.path, c.body)
			if !strings.Contains(a.body, "event: error\n") || strings.Contains(a.body, "[DONE]") {
				t.Errorf("a truncated stream: %s", a.body)
			}
			if got := w.recorded(2)[1].Counts; got.Estimated != 1 {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}

func TestImpossibleDialectUsageIsNotBilled(t *testing.T) {
	for path, c := range map[string]struct{ body, answer string }{
		"/v1/embeddings": {`{"model":"small","input":"one"}`, `{"data":[],"usage":{"prompt_tokens":-1}}`},
		"/v1/rerank":     {`{"model":"small","query":"one","documents":["x"]}`, `{"results":[],"usage":{"total_tokens":1.5}}`},
	} {
		u := newUpstream(t, always(200, c.answer))
		w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: nativeRow})
		a := w.post(path, c.body)
		if got := w.recorded(1)[0].Counts; a.status != 200 || got.Estimated != 1 {
			t.Errorf("%s: %d %s, recorded %+v", path, a.status, a.body, got)
		}
	}
}

func TestInvalidDialectRequestsAreRejected(t *testing.T) {
	const message = `"messages":[{"role":"user","content":"x"}]`
	w := newWorld(t, setup{rows: nativeRow + strings.ReplaceAll(strings.ReplaceAll(oneRow, "small", "talker"), "URL0", `"http://127.0.0.1:1/v1"`)})
	for _, c := range []struct{ path, body, want string }{
		{"messages", `{"model":"small",` + message + `}`, "max_tokens is missing"},
		{"messages", `{"model":"small","max_tokens":0,` + message + `}`, "at least 1"},
		{"messages", `{"model":"small","max_tokens":"5",` + message + `}`, "an integer"},
		{"messages", `{"model":"small","max_tokens":5,"messages":[]}`, "at least one message"},
		{"messages", `{"model":"small","max_tokens":5}`, "messages is missing"},
		{"messages", `{"model":"nothing","max_tokens":5,` + message + `}`, "does not exist"},
		{"messages", `{"model":"small","max_tokens":5,"max_completion_tokens":9999999,` + message + `}`, "max_completion_tokens"},
		{"messages", `{"model":"small","max_tokens":5,"N":9,` + message + `}`, `N`},
		{"messages", `{"model":"small","max_tokens":5,"max_tokens":6,` + message + `}`, "twice"},
		{"messages", `{"model":"small"`, "not valid JSON"},
		{"responses", `{"model":"small"}`, "input is missing"},
		{"responses", `{"model":"small","input":[]}`, "at least one item"},
		{"responses", `{"model":"small","input":5}`, "a string or an array"},
		{"responses", `{"model":"small","input":"x","store":5}`, "store"},
		{"responses", `{"model":"small","input":"x","background":true}`, "background"},
		{"responses", `{"model":"small","input":"x","previous_response_id":"r"}`, "previous_response_id"},
		{"responses", `{"model":"small","input":"x","conversation":"c"}`, "conversation"},
		{"responses", `{"model":"small","input":"x","max_tokens":9999999}`, "max_tokens"},
		{"embeddings", `{"model":"small"}`, "input is missing"},
		{"embeddings", `{"model":"small","input":[]}`, "at least one"},
		{"embeddings", `{"model":"small","input":[1,"a"]}`, "a string, an array"},
		{"embeddings", `{"model":"small","input":[` + strings.Repeat(`"a",`, 2048) + `"a"]}`, "at most 2048"},
		{"embeddings", `{"model":"small","input":[` + strings.Repeat(`1,`, 8192) + `1]}`, "longer than the 8192-token context"},
		{"embeddings", `{"model":"talker","input":"a"}`, "not support the embeddings route"},
		{"rerank", `{"model":"small","documents":["a"]}`, "query is missing"},
		{"rerank", `{"model":"small","query":"q"}`, "documents is missing"},
		{"rerank", `{"model":"small","query":"q","documents":"a"}`, "an array"},
		{"rerank", `{"model":"small","query":"q","documents":[5]}`, "documents[0]"},
		{"score", `{"model":"small","text_1":"a"}`, "text_2 is missing"},
		{"score", `{"model":"small","text_1":"a","text_2":[]}`, "at least one text"},
		{"score", `{"model":"small","text_1":5,"text_2":"a"}`, "text_1"},
	} {
		a := w.post("/v1/"+c.path, c.body)
		if a.status != 400 && a.status != 404 || !strings.Contains(a.body, c.want) {
			t.Errorf("%s %.200s: %d %s, want %q", c.path, c.body, a.status, a.body, c.want)
		}
		if isMessages := strings.HasPrefix(a.body, `{"type":"error","error":{"type":"`); isMessages != (c.path == "messages") {
			t.Errorf("%s: the error is %s", c.path, a.body)
		}
	}
	if a := w.get("/v1/messages", studio); a.status != 405 || a.header.Get("Allow") != "POST" {
		t.Errorf("GET: %d %v", a.status, a.header)
	}
}

func TestMessagesHasItsOwnErrors(t *testing.T) {
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}, tier: credential.Tier{InferenceRequestsPerMinute: 2}})
	w.stopClock()
	const body = `{"model":"small","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`
	call := func(path string, fields ...string) answer {
		return w.do(w.request(t.Context(), http.MethodPost, path, "", strings.NewReader(body), fields...))
	}
	for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
		a := call(path)
		want := `{"type":"error","error":{"type":"authentication_error","message":"An API key is required in the Authorization header, after \"Bearer\"."},"request_id":"ID"}`
		if a.status != 401 || a.withoutID() != want {
			t.Errorf("%s without a key: %d %s", path, a.status, a.withoutID())
		}
	}
	call("/v1/messages", "X-Api-Key: "+studio)
	call("/v1/messages", "X-Api-Key: "+studio)
	a := call("/v1/messages", "X-Api-Key: "+studio)
	if a.status != 429 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"type":"rate_limit_error"`) {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
}

var chatUsed = []string{last, used, done}

func TestMessagesAreTranslatedToChat(t *testing.T) {
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	const body = `{"model":"small","max_tokens":5000,"system":"be kind","messages":[{"role":"user","content":"one two"}]`
	a := w.post("/v1/messages", body+"}")
	want := `{"id":"msg_ID","type":"message","role":"assistant","model":"small","content":[{"type":"text",` +
		`"text":"hello there"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":8,` +
		`"cache_creation_input_tokens":0,"cache_read_input_tokens":3,"output_tokens":5}}`
	if a.status != 200 || a.withoutID() != want {
		t.Errorf("%d %s\nwant %s", a.status, a.withoutID(), want)
	}
	if got, want := u.seen()[0], `{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"one two"}],`+
		`"model":"weights","max_tokens":1000}`; got.path != "/v1/chat/completions" || got.body != want {
		t.Errorf("%s %s, want %s", got.path, got.body, want)
	}
	u.now(events(append([]string{chunk("hello"), chunk(" there")}, chatUsed...)...))
	a = w.post("/v1/messages", body+`,"stream":true}`)
	want = typed(
		`{"type":"message_start","message":{"id":"msg_ID","type":"message","role":"assistant","model":"small","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" there"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5}}`,
		`{"type":"message_stop"}`,
	)
	if a.status != 200 || a.withoutID() != want || a.trailer.Get("X-Tokens-Used") != "16" {
		t.Errorf("%d %v\n%s\nwant\n%s", a.status, a.trailer, a.withoutID(), want)
	}
	if got := w.recorded(2); got[0].Counts != got[1].Counts && got[1].CompletionTokens != 5 {
		t.Errorf("recorded %+v", got)
	}
	a = w.post("/v1/messages/count_tokens", `{"model":"small","messages":[{"role":"user","content":"one two"}]}`)
	if a.status != 200 || a.body != `{"input_tokens":6}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.recorded(2)
}

func TestResponsesAreTranslatedToChat(t *testing.T) {
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	w.stopClock()
	const body = `{"model":"small","instructions":"be kind","input":"one two","max_output_tokens":5000,"tools":` + "[\r\n]"
	response := func(status, output, used string) string {
		return `{"id":"resp_ID","object":"response","created_at":0,"status":"` + status + `","background":false,"error":null,` +
			`"incomplete_details":null,"model":"small","output":[` + output + `],"previous_response_id":null,"store":false,` +
			`"instructions":"be kind","max_output_tokens":5000,"metadata":{},"parallel_tool_calls":true,` +
			`"reasoning":{"effort":null,"summary":null},"temperature":null,"text":{"format":{"type":"text"}},` +
			`"tool_choice":"auto","tools":[  ],"top_p":null,"user":null,"truncation":"disabled","usage":` + used + `}`
	}
	part := func(text string) string {
		return `{"type":"output_text","annotations":[],"logprobs":[],"text":"` + text + `"}`
	}
	item := func(status, parts string) string {
		return `{"id":"msg_ID_0","status":"` + status + `","type":"message","role":"assistant","content":[` + parts + `]}`
	}
	read := func(a answer) string {
		return regexp.MustCompile(`"created_at":\d+`).ReplaceAllString(a.withoutID(), `"created_at":0`)
	}
	a := w.post("/v1/responses", body+"}")
	want := response("completed", item("completed", part("hello there")), `{"input_tokens":11,"input_tokens_details":`+
		`{"cached_tokens":3},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":16}`)
	if a.status != 200 || read(a) != want || a.header.Get("X-Tokens-Used") != "16" {
		t.Errorf("%d %s\nwant %s", a.status, read(a), want)
	}
	if got, want := u.seen()[0].body, `{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"one two"}],`+
		`"model":"weights","max_tokens":1000,"tools":[]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	u.now(events(append([]string{chunk("hello"), chunk(" there")}, chatUsed...)...))
	a = w.post("/v1/responses", body+`,"stream":true}`)
	place := `"item_id":"msg_ID_0","output_index":0,"content_index":0,`
	want = typed(
		`{"type":"response.created","sequence_number":0,"response":`+response("in_progress", "", "null")+`}`,
		`{"type":"response.in_progress","sequence_number":1,"response":`+response("in_progress", "", "null")+`}`,
		`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":`+item("in_progress", "")+`}`,
		`{"type":"response.content_part.added","sequence_number":3,`+place+`"part":`+part("")+`}`,
		`{"type":"response.output_text.delta","sequence_number":4,`+place+`"delta":"hello","logprobs":[]}`,
		`{"type":"response.output_text.delta","sequence_number":5,`+place+`"delta":" there","logprobs":[]}`,
		`{"type":"response.output_text.done","sequence_number":6,`+place+`"logprobs":[],"text":"hello there"}`,
		`{"type":"response.content_part.done","sequence_number":7,`+place+`"part":`+part("hello there")+`}`,
		`{"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":`+item("completed", part("hello there"))+`}`,
		`{"type":"response.completed","sequence_number":9,"response":`+response("completed", item("completed", part("hello there")),
			`{"input_tokens":11,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":16}`)+`}`,
	)
	if a.status != 200 || read(a) != want {
		t.Errorf("%d\n%s\nwant\n%s", a.status, read(a), want)
	}
}

// The memory used for an unfinished response is limited.
func TestEndlessResponseFails(t *testing.T) {
	u := newUpstream(t, func(c *call) {
		c.stream()
		for piece := eventStream(chunk(strings.Repeat("x", 1<<20))); c.write(piece) == nil; {
		}
	})
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	response, err := client.Do(w.request(t.Context(), http.MethodPost, "/v1/responses", studio,
		strings.NewReader(`{"model":"small","stream":true,"input":"x"}`)))
	must(t, err)
	defer response.Body.Close()
	var tail []byte
	read, buffer := 0, make([]byte, 64<<10)
	for err == nil {
		var n int
		n, err = response.Body.Read(buffer)
		read += n
		tail = append(tail, buffer[:n]...)
		tail = tail[max(0, len(tail)-len(buffer)):]
	}
	// The failed response contains the output so far, but no completed item.
	if err != io.EOF || read > 24<<20 || !strings.Contains(string(tail), "event: response.failed") {
		t.Errorf("%d bytes, then %v: …%s", read, err, tail[max(0, len(tail)-500):])
	}
	w.recorded(1)
}

func TestBearerTakesPrecedenceOverKeyHeader(t *testing.T) {
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, whole))}})
	a := w.post("/v1/messages", `{"model":"small","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, "X-Api-Key: ck_wrong")
	if a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
