package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"cutroom/shared/domain/usage"
)

func TestResponsesAreCompletedAndMetered(t *testing.T) {
	const details = `"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}`
	for _, c := range []struct {
		name, upstream, want string
		counts               usage.Counts
	}{
		{"a correct response", whole, asSmall(whole), usage.Counts{Requests: 1, PromptTokens: 11, CompletionTokens: 5, CachedTokens: 3, ReasoningTokens: 2}},
		{"unknown members, space and number formats are kept",
			`{ "id":"c1", "object":"chat.completion","created":7e0,"x":[1.0,1e2],"model" : "weights","choices":[{"index":0,` +
				`"y":null,"message":{"z":"\u0041","role":"assistant","content":"a"},"finish_reason":"stop","logprobs":null}],` +
				`"usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16,"w":1,` + details + `} }`,
			`{ "id":"c1", "object":"chat.completion","created":7e0,"x":[1.0,1e2],"model" : "small","choices":[{"index":0,` +
				`"y":null,"message":{"z":"\u0041","role":"assistant","content":"a"},"finish_reason":"stop","logprobs":null}],` +
				`"usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16,"w":1,` + details + `} }`,
			reported},
		{"no details",
			`{"id":"c1","object":"chat.completion","created":7,"model":"weights","choices":[],"usage":{"prompt_tokens":11,` +
				`"completion_tokens":5}}`,
			`{"id":"c1","object":"chat.completion","created":7,"model":"small","choices":[],"usage":{"total_tokens":16,` + details + `,"prompt_tokens":11,"completion_tokens":5}}`, reported},
		{"null details",
			`{"id":"c1","object":"chat.completion","created":7,"model":"weights","choices":[],"usage":{"prompt_tokens":11,` +
				`"completion_tokens":5,"total_tokens":16,"prompt_tokens_details":null,"completion_tokens_details":{}}}`,
			`{"id":"c1","object":"chat.completion","created":7,"model":"small","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`, reported},
		{"no usage", `{"id":"c1","object":"chat.completion","created":7,"model":"weights","choices":[{"index":0,` +
			`"message":{"role":"assistant","content":"one two three"},"finish_reason":"stop"}]}`,
			`{"usage":{"prompt_tokens":6,"completion_tokens":3,"total_tokens":9,` + details + `},"id":"c1","object":"chat.completion","created":7,"model":"small","choices":[{"index":0,"message":{"role":"assistant","content":"one two three"},"finish_reason":"stop"}]}`, counted(3)},
		{"a malformed usage", `{"id":"c1","object":"chat.completion","created":7,"model":"weights",` +
			`"choices":[{"index":0,"message":{"role":"assistant","content":"one two three"},"finish_reason":"stop"}],` +
			`"usage":null}`,
			`{"id":"c1","object":"chat.completion","created":7,"model":"small","choices":[{"index":0,"message":{"role":"assistant","content":"one two three"},"finish_reason":"stop"}],"usage":{"prompt_tokens":6,"completion_tokens":3,"total_tokens":9,` + details + `}}`, counted(3)},
		{"almost empty", `{"choices":[{},{"message":{}},{"message":null,"index":null,"finish_reason":null}],` +
			`"usage":{"prompt_tokens":11,"completion_tokens":5}}`,
			`{"id":"chatcmpl-ID","object":"chat.completion","created":NOW,"model":"small","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":""}},{"index":1,"finish_reason":"stop","message":{"role":"assistant","content":""}},{"message":{"role":"assistant","content":""},"index":2,"finish_reason":"stop"}],"usage":{"total_tokens":16,` + details + `,"prompt_tokens":11,"completion_tokens":5}}`, reported},
		{"null content with tool calls is kept",
			`{"id":"c1","object":"chat.completion","created":7,"model":"weights","choices":[{"index":0,` +
				`"message":{"role":"assistant","content":null,"tool_calls":[]},"finish_reason":"tool_calls"}],` +
				`"usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16,` + details + `}}`,
			`{"id":"c1","object":"chat.completion","created":7,"model":"small","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16,` + details + `}}`, reported},
		{"other null content becomes text",
			`{"id":"c1","object":"chat.completion","created":7,"model":"weights","choices":[{"index":0,` +
				`"message":{"role":"assistant","content":null},"finish_reason":"length"}],"usage":{"prompt_tokens":11,` +
				`"completion_tokens":5,"total_tokens":16,` + details + `}}`,
			`{"id":"c1","object":"chat.completion","created":7,"model":"small","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16,` + details + `}}`, reported},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, c.upstream))}})
			a := w.chat(plain, "X-Request-Id: ID")
			got := regexp.MustCompile(`"created":\d{10}`).ReplaceAllString(a.body, `"created":NOW`)
			if a.status != 200 || got != c.want || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("got %d %s\n%s\nwant\n%s", a.status, a.header, got, c.want)
			}
			if a.header.Get("X-Tokens-Used") != tokens(c.counts) || a.header.Get("X-Request-Id") != "ID" {
				t.Errorf("X-Tokens-Used is %s", a.header)
			}
			if r := w.recorded(1)[0]; r.Counts != c.counts {
				t.Errorf("recorded %+v, want %+v", r.Counts, c.counts)
			}
			if o := w.completed(1)[0]; o.Model != "small" || o.Route != "chat" || o.Status != 200 || o.Code != "" ||
				o.Counts != c.counts || o.Duration <= 0 {
				t.Errorf("observed %+v", o)
			}
		})
	}
}

func TestTextCompletionsAreForwarded(t *testing.T) {
	const text = `{"id":"c1","object":"text_completion","created":7,"model":"weights","choices":[{"index":0,"text":"a ` +
		`b","finish_reason":"length"}],"usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16}}`
	u := newUpstream(t, always(200, text))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	a := w.complete(`{"model":"small","prompt":[1,2,3]}`)
	if a.status != 200 || a.body != asSmall(text) || a.header.Get("X-Tokens-Used") != "16" {
		t.Errorf("got %d %s %s", a.status, a.body, a.header)
	}
	if got := u.seen()[0]; got.path != "/v1/completions" || got.body != `{"model":"weights","prompt":[1,2,3]}` {
		t.Errorf("the upstream saw %s %s", got.path, got.body)
	}
	u.now(always(200, `{"choices":[{"text":"a b"}]}`))
	a = w.complete(`{"model":"small","prompt":[1,2,3]}`)
	if !strings.Contains(a.body, `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`) ||
		!strings.Contains(a.body, `"object":"text_completion"`) {
		t.Errorf("got %s", a.body)
	}
	u.now(events(`{"id":"t","object":"text_completion","created":7,"model":"weights","choices":[{"index":0,"text":"one `+
		`two","finish_reason":"stop"}]}`, done))
	a = w.complete(`{"model":"small","prompt":"x","stream":true,"stream_options":{"include_usage":true}}`)
	want := eventStream(`{"id":"t","object":"text_completion","created":7,"model":"small","choices":[{"index":0,`+
		`"text":"one two","finish_reason":"stop"}]}`,
		`{"id":"t","object":"text_completion","created":7,"model":"small","choices":[],"usage":{"prompt_tokens":1,`+
			`"completion_tokens":2,"total_tokens":3}}`, done)
	if a.body != want {
		t.Errorf("got\n%s\nwant\n%s", a.body, want)
	}
}

func TestUpstreamErrorsAreConverted(t *testing.T) {
	const failed = `{"error":{"message":"The model server failed.","type":"api_error","param":null,` +
		`"code":"upstream_error"}}`
	refusal := func(message, param, code string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":%s,"code":%s}}`,
			message, param, code)
	}
	t.Setenv("UPSTREAM_KEY", "sk-very-secret")
	const rows = `
  - {id: small, routes: [chat, completions], context_length: 8192, max_output_length: 1000, upstreams: [{name: first, url: URL0, model: weights, secret: "env:UPSTREAM_KEY"}]}
`
	sizes := regexp.MustCompile(`: (the response|an event of the stream) is too large: it has more than (16 MiB|33554432 bytes)`)
	for _, c := range []struct {
		name     string
		upstream func(*call)
		status   int
		body     string
		tokens   string
	}{
		{"a rejection is forwarded",
			always(400,
				`{"error":{"message":"too long","type":"BadRequestError","param":"messages","code":"context_length_exceeded"}}`),
			400,
			refusal("too long", `"messages"`, `"context_length_exceeded"`), ""},
		{"vLLM's format", always(400, `{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}`), 400, refusal("too long", "null", "null"), ""},
		{"FastAPI's format", always(422, `{"detail":"no such field"}`), 422, refusal("no such field", "null", "null"), ""},
		{"an error string", always(413, `{"error":"too big"}`), 413, refusal("too big", "null", "null"), ""},
		{"not JSON", always(400, `<html>`), 400, refusal("The model server rejected the request.", "null", "null"), ""},
		{"a message with the key", always(400, `{"error":{"message":"key sk-very-secret, too long"}}`), 400, refusal("key ***, too long", "null", "null"), ""},
		{"an error with status 200", always(200, `{"error":{"message":"boom"}}`), 502, failed, ""},
		{"a rejection with status 200", always(200, `{"error":{"message":"too long","code":400}}`), 400, refusal("too long", "null", "null"), ""},
		{"an error that used tokens", always(200, `{"error":{"message":"boom"},"usage":{"prompt_tokens":4,"completion_tokens":3}}`), 502, failed, "7"},
		{"an unknown key", always(401, `{"error":{"message":"Incorrect API key provided: sk-very-secret"}}`), 502, failed, ""},
		{"a forbidden key", always(403, `{"error":{"message":"sk-very-secret may not"}}`), 502, failed, ""},
		{"an unknown model", always(404, `{"error":{"message":"The model weights does not exist"}}`), 502, failed, ""},
		{"a failure", always(500, `{"error":{"message":"stack trace"}}`), 502, failed, ""},
		{"a response that is not JSON", always(200, `hello`), 502, failed, ""},
		{"a truncated response", always(200, whole[:100]), 502, failed, ""},
		{"a response that is not a completion", always(200, `{"choices":"x"}`), 502, failed, ""},
		{"a response that is not an object", always(200, `[]`), 502, failed, ""},
		{"nothing", always(200, ``), 502, failed, ""},
		{"a response shorter than its length", func(c *call) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}") }, 502, failed, ""},
		{"gigabytes", func(c *call) {
			c.stream()
			for piece := strings.Repeat(" ", 1<<20); c.write(piece) == nil; {
			}
		}, 502, failed, ""},
		{"an endless error", func(c *call) {
			io.WriteString(c, "HTTP/1.1 400 x\r\nTransfer-Encoding: chunked\r\n\r\n")
			for piece := strings.Repeat(" ", 1<<20); c.write(piece) == nil; {
			}
		}, 400, refusal("The model server rejected the request.", "null", "null"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setup{rows: rows, upstreams: []*modelServer{newUpstream(t, c.upstream)}})
			for _, request := range []string{plain, streamed} {
				a := w.chat(request)
				if c.name == "gigabytes" {
					a.body = sizes.ReplaceAllString(a.body, "")
				}
				if a.status != c.status || a.body != c.body || a.header.Get("X-Tokens-Used") != c.tokens {
					t.Errorf("got %d %s %v, want %d %s", a.status, a.body, a.header, c.status, c.body)
				}
			}
			if strings.Contains(w.log.String(), "very-secret") {
				t.Errorf("the log contains the key: %s", w.log)
			}
		})
	}
}

func TestLogContainsNoPromptText(t *testing.T) {
	u := newUpstream(t, always(200, strings.ReplaceAll(whole, "hello there", "private answer")))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	body := strings.ReplaceAll(plain, "one two", "private question")
	w.chat(body)
	u.now(always(500, `{"error":{"message":"private trouble"}}`))
	w.chat(body)
	u.now(func(c *call) { c.stream(); c.write(eventStream(chunk("private chunk"))); c.reset() })
	w.chat(strings.ReplaceAll(streamed, "one two", "private question"))
	w.chat(`{"model":"small","messages":[{"role":"private role","content":"x"}]}`)
	w.chat(`{"model":"private model","messages":[{"role":"user","content":"x"}]}`)
	w.chat(`{"private name": `)
	w.completed(6)
	text := w.log.String()
	if strings.Contains(text, "private") || strings.Contains(text, studio) {
		t.Errorf("the log contains text: %s", text)
	}
	for line := range strings.Lines(text) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry["request_id"] == "" ||
			entry["account"] != "studio" {
			t.Errorf("a log line lacks fields: %s", line)
		}
	}
}

// Megabytes of text are estimated instead of counted word by word.
func TestLongTextsAreEstimated(t *testing.T) {
	const words = 1 << 20 // each is 8 bytes long
	prompt := strings.Replace(plain, "one two", strings.Repeat("lengthy ", words), 1)
	answer := strings.Replace(whole, "hello there", strings.Repeat("answers ", words), 1)
	answer = answer[:strings.Index(answer, `,"usage"`)] + "}"
	u := newUpstream(t, always(200, answer))
	w := newWorld(t, setup{rows: strings.NewReplacer("1048576", "4194304", "1000,", "2000000,").Replace(longRow),
		upstreams: []*modelServer{u}})
	w.chat(prompt)
	u.now(events(chunk(strings.Repeat("answers ", words/8)), last, done))
	w.chat(streamed)
	about := func(got, want int64) bool { return got > want-want/100 && got < want+want/100 }
	if r := w.recorded(2); !about(r[0].PromptTokens, words) || !about(r[0].CompletionTokens, words) ||
		r[0].Estimated != 1 || !about(r[1].CompletionTokens, words/8) {
		t.Errorf("recorded %+v, want about %d and %d words", r, words, words/8)
	}
	if n := w.counted.Load(); n > 1<<20 {
		t.Errorf("%d bytes were counted", n)
	}
}

// A prompt that begins with spaces is estimated too, and so is any other text or image that the model reads.
func TestEstimatesCannotBeEvaded(t *testing.T) {
	const words = 40_000 // each is 8 bytes long
	u := newUpstream(t, always(200, strings.Replace(whole[:strings.Index(whole, `,"usage"`)]+"}", `"content":"hello there"`,
		`"content":[{"type":"text","text":"one two "}],"function_call":{"name":"three ","arguments":"four five "},`+
			`"audio":{"transcript":"six"}`, 1)))
	w := newWorld(t, setup{rows: strings.NewReplacer("1048576", "4194304", "1000,", "2000000,").Replace(longRow),
		upstreams: []*modelServer{u}})
	w.chat(strings.Replace(plain, "one two", strings.Repeat(" ", 70_000)+strings.Repeat("lengthy ", words), 1))
	if r := w.recorded(1); r[0].PromptTokens < words*9/10 || r[0].PromptTokens > words*11/10 || r[0].CompletionTokens != 6 {
		t.Errorf("recorded %+v, want about %d words and 6", r, words)
	}
	w.chat(strings.Replace(plain, `"messages":[`, `"chat_template_kwargs":{"documents":["`+strings.Repeat("more ", 100)+`"]},"messages":[`+
		`{"role":"assistant","content":"a","reasoning_content":"`+strings.Repeat("lengthy ", 1000)+`"},`+
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/1.png"}}]},`, 1))
	if r := w.recorded(2)[1]; r.PromptTokens < 2100 || r.PromptTokens > 2150 {
		t.Errorf("recorded %+v, want about 1000 words of reasoning, an image and 100 words", r)
	}
}
