package gateway_test

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway"
	"cutroom/shared/testkit/await"
)

// Codex adds metadata to each item if it believes that the gateway is OpenAI's service.
func TestClientMetadataOfItemsIsDropped(t *testing.T) {
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	a := w.post("/v1/responses", `{"model":"small","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}],`+
		`"internal_chat_message_metadata_passthrough":{"turn_id":"t"},"client_metadata":{},"metadata":{"a":"b"}},`+
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}","internal_chat_message_metadata_passthrough":{}}]}`)
	want := `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","tool_calls":` +
		`[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}],"model":"weights"}`
	if a.status != 200 || u.seen()[0].body != want {
		t.Fatalf("%d %s, the server got %v", a.status, a.body, u.seen())
	}
	a = w.post("/v1/responses", `{"model":"small","input":[{"role":"user","content":"hi","tone":"kind"}]}`)
	if a.status != 400 || !strings.Contains(a.body, `"param":"input[0].tone"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Codex first tries a WebSocket. It falls back to POST immediately only if it gets 426.
func TestWebSocketUpgradeGets426(t *testing.T) {
	w := newWorld(t, setup{})
	a := w.get("/v1/responses", studio, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
		"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==")
	if a.status != http.StatusUpgradeRequired || a.header.Get("Upgrade") != "HTTP/1.1" || a.header.Get("Connection") != "Upgrade" ||
		a.header.Get("Allow") != "POST" || !strings.Contains(a.body, `"type":"invalid_request_error"`) {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if a := w.get("/v1/responses", studio); a.status != http.StatusMethodNotAllowed {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Since version 0.17, vLLM reads "reasoning". Other servers read "reasoning_content".
func TestEarlierReasoningUsesUpstreamFieldName(t *testing.T) {
	const thought = `{"model":"small","max_tokens":5,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"h\"m","signature":""},{"type":"text","text":"a"}]}]}`
	const item = `{"model":"small","input":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"h\"m"}]},{"role":"assistant","content":"a"}]}`
	const chat = `{"model":"small","messages":[{"role":"assistant", "FIELD" : "h\"m","content":"a"},{"FIELD":null,"role":"user","content":"b"}]}`
	named := func(field string) string { return strings.ReplaceAll(chat, "FIELD", field) }
	const long, short = `"reasoning_content":"h\"m"`, `"reasoning":"h\"m"`
	for _, c := range []struct{ row, path, body, want string }{
		{"", "/v1/messages", thought, `{"role":"assistant",` + long + "," + short + `,"content":"a"}`},
		{"", "/v1/responses", item, `{"role":"assistant",` + long + "," + short + `,"content":"a"}`},
		{"reasoning", "/v1/messages", thought, `{"role":"assistant",` + short + `,"content":"a"}`},
		{"reasoning_content", "/v1/responses", item, `{"role":"assistant",` + long + `,"content":"a"}`},
		{"", "/v1/chat/completions", named("reasoning"), `{"role":"assistant", "reasoning" : "h\"m","content":"a"},{"reasoning":null,`},
		{"both", "/v1/chat/completions", named("reasoning"), `{"role":"assistant", "reasoning" : "h\"m",` + long + `,"content":"a"},{"reasoning":null,`},
		{"reasoning", "/v1/chat/completions", named("reasoning_content"), `{"role":"assistant", "reasoning" : "h\"m","content":"a"},{"reasoning_content":null,`},
		{"reasoning_content", "/v1/chat/completions", named("reasoning"), `{"role":"assistant", "reasoning_content" : "h\"m","content":"a"},`},
		{"both", "/v1/chat/completions", `{"model":"small","messages":[{"role":"assistant",` + long + "," + short + `}]}`, `[{"role":"assistant",` + long + "," + short + `}]`},
	} {
		u := newUpstream(t, always(200, whole))
		rows := oneRow
		if c.row != "" {
			rows = strings.Replace(rows, "id: small", "id: small, reasoning_field: "+c.row, 1)
		}
		w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: rows})
		a := w.post(c.path, c.body)
		if a.status != 200 || !strings.Contains(u.seen()[0].body, c.want) {
			t.Errorf("%q, %s: %d, the server got %v, want %s", c.row, c.path, a.status, u.seen(), c.want)
		}
		// Not all names are edited, because edits take memory that no other limit counts.
		many := strings.Repeat(`{"role":"assistant","reasoning":"","reasoning_content":null},{"reasoning":"x","role":"assistant"},`, 20_000)
		a = w.chat(`{"model":"small","messages":[` + many[:len(many)-1] + `]}`)
		if n := strings.Count(u.seen()[1].body, `"reasoning":"x"`); a.status != 200 || c.row == "reasoning_content" && (n < 10_000 || n > 19_999) {
			t.Errorf("%q: %d, %d names are unchanged", c.row, a.status, n)
		}
	}
}

// Some clients use the prompt's token count in the first event. The last event corrects it.
func TestMessageStartEstimatesThePrompt(t *testing.T) {
	u := newUpstream(t, events(append([]string{chunk("hello")}, chatUsed...)...))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	for text, want := range map[string]int64{"one two": 6, strings.Repeat("one ", 100_000): 100_005} {
		message := `{"model":"small","messages":[{"role":"user","content":"` + text + `"}]`
		a := w.post("/v1/messages", message+`,"max_tokens":5,"stream":true}`)
		_, started, _ := strings.Cut(a.body, "data: ")
		started, ended, _ := strings.Cut(started, "\n")
		n := gjson.Get(started, "message.usage.input_tokens").Int()
		if a.status != 200 || n < want*99/100 || n > want || !strings.Contains(ended, `"usage":{"input_tokens":11,`) {
			t.Errorf("%d, %d tokens, want %d; %.500s", a.status, n, want, a.body)
		}
		if counted := gjson.Get(w.post("/v1/messages/count_tokens", message+"}").body, "input_tokens").Int(); counted < n*99/100 || counted > n+n/100 {
			t.Errorf("count_tokens returns %d, the event has %d", counted, n)
		}
	}
}

func TestMessagesHaveAnthropicsRequestID(t *testing.T) {
	w := newWorld(t, setup{})
	for path, has := range map[string]bool{"/v1/messages": true, "/v1/messages/count_tokens": true, "/v1/responses": false} {
		a := w.post(path, `{}`)
		if id := a.header.Get("Request-Id"); (id != "") != has || has && id != a.header.Get("X-Request-Id") {
			t.Errorf("%s: %d %q %v", path, a.status, id, a.header)
		}
	}
}

func callChunk(choice, index int, id, name, arguments string) string {
	if id != "" {
		id = fmt.Sprintf(`"id":%q,"type":"function",`, id)
	}
	if name != "" {
		name = fmt.Sprintf(`"name":%q,`, name)
	}
	return fmt.Sprintf(`{"id":"c1","model":"small","choices":[{"index":%d,"delta":{"tool_calls":[{"index":%d,%s"function":{%s"arguments":%q}}]},"finish_reason":null}]}`,
		choice, index, id, name, arguments)
}

// Libraries join the pieces of a call by its index.
func TestParallelCallsInChatsHaveDifferentIndexes(t *testing.T) {
	runStreams(t, []streamCase{
		{"all calls have index 0", events(callChunk(0, 0, "a", "f", "{"), callChunk(0, 0, "", "", "}"), callChunk(0, 0, "b", "g", "{"), callChunk(1, 0, "c", "h", "{}"),
			callChunk(0, 0, "b", "", "}"), callChunk(0, 1, "d", "i", ""), callChunk(0, 0, "", "", " "), callChunk(0, 1, "", "", "{}"), last, used, done), streamed,
			eventStream(callChunk(0, 0, "a", "f", "{"), callChunk(0, 0, "", "", "}"), callChunk(0, 1, "b", "g", "{"), callChunk(1, 0, "c", "h", "{}"),
				callChunk(0, 1, "b", "", "}"), callChunk(0, 2, "d", "i", ""), callChunk(0, 1, "", "", " "), callChunk(0, 2, "", "", "{}"), asSmall(last), done), reported},
		{"calls in reverse order", events(callChunk(0, 1, "a", "f", "{}"), callChunk(0, 0, "b", "g", "{}"), last, used, done), streamed,
			eventStream(callChunk(0, 1, "a", "f", "{}"), callChunk(0, 0, "b", "g", "{}"), asSmall(last), done), reported},
	})
}

// Some servers interleave the arguments of parallel calls. The Messages dialect does not allow this.
func TestInterleavedCallsBecomeMessages(t *testing.T) {
	u := newUpstream(t, events(callChunk(0, 0, "a", "f", "{"), callChunk(0, 1, "b", "g", "{"), callChunk(0, 0, "", "", "}"), callChunk(0, 1, "", "", "}"), last, used, done))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	a := w.post("/v1/messages", `{"model":"small","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"x"}]}`)
	var got []string
	for line := range strings.SplitSeq(a.body, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			event := gjson.Parse(data)
			got = append(got, event.Get("index").Raw+event.Get("content_block.id").Str+event.Get("delta.partial_json").Str)
		}
	}
	if want := ` 0a 0{ 0} 0 1b 1{ 1} 1  `; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q: %s", strings.Join(got, " "), want, a.body)
	}
}

// A generated image arrives as base64 in a single event.
func TestLargeEventsAreForwarded(t *testing.T) {
	rows := oneRow + `
  - {id: narrow, routes: [chat, responses], context_length: 8192, max_output_length: 1000, max_event_bytes: 65536, upstreams: [{name: second, url: URL0, model: weights}]}
`
	large := chunk(strings.Repeat("x", 5<<20))
	u := newUpstream(t, events(large, last, used, done))
	w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: rows})
	if a := w.chat(streamed); a.status != 200 || a.body != eventStream(asSmall(large), asSmall(last), done) {
		t.Errorf("%d %.300s", a.status, a.body)
	}
	a := w.chat(strings.Replace(streamed, "small", "narrow", 1))
	if a.status != 502 || !strings.Contains(a.body, `"The model server failed: an event of the stream is too large: it has more than 65536 bytes."`) {
		t.Errorf("%d %.300s", a.status, a.body)
	}
	u.now(writing(typed(`{"type":"response.created","response":{"id":"r"}}`, `{"type":"response.image","b64":"`+strings.Repeat("A", 70_000)+`"}`)))
	a = w.post("/v1/responses", `{"model":"narrow","stream":true,"input":"x"}`)
	if a.status != 200 || !strings.Contains(a.body, "event: error\n") || !strings.Contains(a.body, "too large") {
		t.Errorf("%d %.300s", a.status, a.body)
	}
}

// The gateway asks servers for uncompressed responses. If a server compresses a response anyway,
// the log names the encoding.
func TestUpstreamsAreAskedForUncompressedResponses(t *testing.T) {
	u := newUpstream(t, always(200, "\x0b\x05\x80{}\x03", "Content-Encoding: br"))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	a := w.chat(plain)
	if a.status != 502 || u.seen()[0].header.Get("Accept-Encoding") != "identity" || !strings.Contains(w.log.String(), `content encoding \"br\"`) {
		t.Errorf("%d %s, asked for %v: %s", a.status, a.body, u.seen()[0].header, w.log)
	}
	u.now(always(200, whole, "Content-Encoding: utf-8"))
	if a := w.chat(plain); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestRerankHasTheAliasesOfOtherServers(t *testing.T) {
	u := newUpstream(t, always(200, `{"results":[{"index":0,"relevance_score":0.5}]}`))
	w := newWorld(t, setup{upstreams: []*modelServer{u}, rows: nativeRow})
	for i, path := range []string{"/v1/rerank", "/v2/rerank", "/rerank"} {
		a := w.post(path, `{"model":"small","query":"q","documents":["a"]}`)
		if a.status != 200 || !strings.Contains(a.body, `"relevance_score":0.5`) || u.seen()[i].path != "/v1/rerank" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// Decompressing takes long, so an account cannot do it more than once at a time.
func TestAccountsDecompressOneLargeBodyAtATime(t *testing.T) {
	w := newWorld(t, setup{rows: longRow, upstreams: []*modelServer{newUpstream(t, always(200, whole))}, bodyWait: time.Second})
	random := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(random)
	large := zipped(strings.Replace(plain, "one two", base64.StdEncoding.EncodeToString(random), 1))
	ask := func(key string, body io.Reader) <-chan answer {
		got := make(chan answer, 1)
		request := w.request(t.Context(), "POST", "/v1/chat/completions", key, body, "Content-Encoding: gzip")
		go func() { got <- w.do(request) }()
		return got
	}
	body, send := io.Pipe()
	first := ask(studio, body)
	io.WriteString(send, large[:1<<19])
	await.Until(t, "the first body keeps the second waiting", func() bool {
		a := await.Receive(t, "a response", ask(studio, strings.NewReader(large)))
		return a.status == http.StatusTooManyRequests
	})
	if a := await.Receive(t, "another account's response", ask(rival, strings.NewReader(large))); a.status != 200 {
		t.Errorf("%d %.200s", a.status, a.body)
	}
	io.WriteString(send, large[1<<19:])
	send.Close()
	if a := await.Receive(t, "the first response", first); a.status != 200 {
		t.Errorf("%d %.200s", a.status, a.body)
	}
}

// Anthropic's libraries send their version and key with every call, and read only their error format.
func TestAnthropicsClientsAreRecognized(t *testing.T) {
	w := newWorld(t, setup{})
	call := func(method, path string, fields ...string) answer {
		return w.do(w.request(t.Context(), method, path, "", nil, fields...))
	}
	for _, c := range []struct {
		method, path, field string
		status              int
		theirs              bool
	}{
		{"GET", "/v1/models", "X-Api-Key: " + studio, 200, false},
		{"GET", "/v1/models/small", "X-Api-Key: " + studio, 200, false},
		{"GET", "/v1/models", "X-Api-Key: ck_wrong", 401, false},
		{"GET", "/v1/models", "Anthropic-Version: 2023-06-01", 401, true},
		{"GET", "/v1/skills", "Anthropic-Version: 2023-06-01", 404, true},
		{"GET", "/v1/skills", "X-Api-Key: " + studio, 404, false},
		{"POST", "/v1/messages/batches", "X-Api-Key: " + studio, 404, true},
		{"GET", "/v1/usage", "X-Api-Key: " + studio, 401, false},
	} {
		a := call(c.method, c.path, c.field)
		if a.status != c.status || strings.HasPrefix(a.body, `{"type":"error"`) != c.theirs {
			t.Errorf("%s %s with %.20s: %d %s", c.method, c.path, c.field, a.status, a.body)
		}
	}
}

func zipped(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

func zstandard(t *testing.T, text string, options ...zstd.EOption) string {
	t.Helper()
	var b strings.Builder
	z, err := zstd.NewWriter(&b, append([]zstd.EOption{zstd.WithZeroFrames(true)}, options...)...)
	must(t, err)
	io.WriteString(z, text)
	must(t, z.Close())
	return b.String()
}

// zstdFrame returns a frame with one uncompressed block. The window's exponent is in the upper five bits.
func zstdFrame(window byte, text string) string {
	size := len(text)<<3 | 1
	return string([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, window, byte(size), byte(size >> 8), byte(size >> 16)}) + text
}

func TestCompressedRequestsAreRead(t *testing.T) {
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}, batches: true})
	long := strings.Replace(plain, "one", strings.Repeat("one ", 20_000), 1)
	const batch = `{"input_file_id":"file_1","endpoint":"/v1/chat/completions","completion_window":"24h"}`
	for _, c := range []struct {
		name, path, coding, body string
		status                   int
	}{
		{"gzip", "/v1/chat/completions", "gzip", zipped(long), 200},
		{"two members", "/v1/chat/completions", "x-gzip", zipped(long[:9]) + zipped(long[9:]), 200},
		{"none", "/v1/chat/completions", "identity", long, 200},
		{"translated", "/v1/messages", "GZIP", zipped(`{"model":"small","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`), 200},
		{"batches", "/v1/batches", "gzip", zipped(batch), 400},
		{"zstd", "/v1/chat/completions", "zstd", zstandard(t, long), 200},
		{"zstd with a large window", "/v1/chat/completions", "ZSTD", zstdFrame(0x68, plain), 200},
		{"zstd with a larger window", "/v1/chat/completions", "zstd", zstdFrame(0x70, plain), 400},
		{"batches with a large window", "/v1/batches", "zstd", zstdFrame(0x68, batch), 400},
		{"two frames", "/v1/chat/completions", "zstd", zstandard(t, long[:50_000]) + zstandard(t, long[50_000:]), 200},
		{"a second frame with a larger window", "/v1/chat/completions", "zstd", zstandard(t, long[:9]) + zstandard(t, strings.Repeat(long, 9), zstd.WithWindowSize(8<<20)), 400},
		{"not zstd", "/v1/chat/completions", "zstd", plain, 400},
		{"truncated zstd", "/v1/chat/completions", "zstd", zstandard(t, long)[:50], 400},
		{"no zstd", "/v1/chat/completions", "zstd", "", 400},
		{"a bomb of zstd", "/v1/chat/completions", "zstd", zstandard(t, strings.Repeat(" ", 33<<20)), 413},
		{"a declared bomb", "/v1/chat/completions", "zstd", "\x28\xb5\x2f\xfd\xa0\xff\xff\xff\xff\x03\x00\x00x", 400},
		{"many empty frames", "/v1/chat/completions", "zstd", strings.Repeat(zstandard(t, ""), 100_000), 400},
		{"skipped frames", "/v1/chat/completions", "zstd", zstandard(t, plain) + strings.Repeat("\x50\x2a\x4d\x18\x00\x00\x00\x00", 100_000), 400},
		{"a skipped gigabyte", "/v1/chat/completions", "zstd", "\x50\x2a\x4d\x18\x00\x00\x00\x40" + plain, 400},
		{"two codings", "/v1/chat/completions", "gzip, gzip", zipped(zipped(plain)), 415},
		{"a batch in brotli", "/v1/batches", "br", "x", 415},
		{"not gzip", "/v1/chat/completions", "gzip", plain, 400},
		{"truncated", "/v1/chat/completions", "gzip", zipped(long)[:50], 400},
		{"more behind it", "/v1/chat/completions", "gzip", zipped(plain) + "x", 400},
		{"nothing", "/v1/chat/completions", "gzip", "", 400},
		{"a bomb", "/v1/chat/completions", "gzip", string(bomb()), 413},
		{"much white space", "/v1/chat/completions", "gzip", zipped(strings.Repeat(" ", 2<<20) + plain), 413},
		{"many empty blocks", "/v1/chat/completions", "gzip", zipped("")[:10] + strings.Repeat("\x00\x00\x00\xff\xff", 200_000), 400},
		{"much without content", "/v1/chat/completions", "gzip", zipped(strings.Repeat(" ", 16<<20)) +
			zipped("")[:10] + strings.Repeat("\x00\x00\x00\xff\xff", 2<<20), 413},
		{"many empty members", "/v1/chat/completions", "gzip", strings.Repeat(zipped(""), 200), 400},
	} {
		a := w.post(c.path, c.body, "Content-Encoding: "+c.coding)
		accepted := a.header.Get("Accept-Encoding")
		if a.err != nil || a.status != c.status || (accepted == "gzip, zstd") != (c.status == 415) ||
			strings.HasPrefix(c.name, "batches") && !strings.Contains(a.body, "file_1") {
			t.Errorf("%s: %d %q %.300s %v", c.name, a.status, accepted, a.body, a.err)
		}
	}
	if got := u.seen()[0]; got.body != strings.Replace(long, "small", "weights", 1) || got.header.Get("Content-Encoding") != "" {
		t.Errorf("the server got %d bytes, %v", len(got.body), got.header)
	}
	if !w.gateway.HoldBody("studio", gateway.DefaultBodyMemory/2) {
		t.Error("memory is still reserved")
	}
}
