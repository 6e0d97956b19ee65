package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	exact "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/request"
	"cutroom/shared/service/gateway/upstream"
)

func fuzzed(t *testing.T, route catalog.Route, stream string) (*completion, *httptest.ResponseRecorder) {
	t.Helper()
	row := &catalog.Inference{
		ID: "small", Routes: []catalog.Route{route}, ContextLength: 100, MaxOutputLength: 50, MaxTokensField: "max_tokens",
		MaxChoices: 2, MaxPrompts: 2, MaxEvent: catalog.DefaultMaxEvent, AnyField: true, StreamOptions: true,
	}
	text := `{"model":"small","messages":[{"role":"user","content":"hi"}],"prompt":"hi"` + stream + `}`
	request, problem := request.Parse(route, []byte(text),
		request.Caller{Find: func(string) (*catalog.Inference, bool) { return row, true }})
	if problem != nil {
		t.Fatal(problem)
	}
	recorder := httptest.NewRecorder()
	c := &completion{
		gateway: &Gateway{bodies: newBodyMemory(0, 0), config: Config{
			Spending: Spending{Meter: unmetered{}, Tokenizer: letters{}}, Now: time.Now, Date: time.Now,
			Logger: slog.New(slog.DiscardHandler),
		}},
		w: recorder, r: httptest.NewRequest(http.MethodPost, "/", nil), route: route, request: request,
		pool:    &upstream.Pool{Model: row, Slug: jsonedit.Quote("small")},
		counter: tokenCounter{generated: estimate{tokenizer: letters{}}, maxTokens: 150},
	}
	c.stream = newStreamWriter(c.w, time.Hour, true)
	t.Cleanup(c.stream.stopKeepAlive)
	return c, recorder
}

type unmetered struct{}

func (unmetered) Record(context.Context, usage.Record) error { return nil }

// letters counts each byte as a token.
type letters struct{}

func (letters) Count(text string) int { return len(text) }

type bufferedBody struct{ io.Reader }

func (bufferedBody) Close() error        { return nil }
func (bufferedBody) Allow(time.Duration) {}
func (bufferedBody) Ended() bool         { return false }

var answerSeeds = []string{
	`{"id":"c","object":"x","created":7,"model":"w","choices":[{"index":0,"message":{"role":"assistant","content":"a"},` +
		`"finish_reason":"stop","text":"b"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,` +
		`"prompt_tokens_details":{"cached_tokens":1}}}`,
	`{"choices":[{},null,{"message":null},{"delta":{"content":"x","tool_calls":[{"function":{"name":"f",` +
		`"arguments":"{}"}}]}}],"usage":{"prompt_tokens":1e15,"completion_tokens":-2}}`,
	"{\"choices\":[],\"model\":\"a\",\"model\":{},\"usage\":[],\"usage\":{\"prompt_tokens\":5.0,\"completion_tokens\":1,\"completion_tokens_details\":5},\"x\":\"\xff\"}",
	`{"error":{"message":"no","code":400,"param":[]}}`, `[[[[`, `{"error":"x"}`, ` {"choices": [ ] } `,
}

// A forwarded response is valid JSON with the caller's model name and the metered tokens.
func FuzzAnswer(f *testing.F) {
	for _, seed := range answerSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, route := range []catalog.Route{catalog.Chat, catalog.Completions} {
			c, recorder := fuzzed(t, route, "")
			if c.answer(upstream.Reply{Status: 200, Length: -1, Body: bufferedBody{bytes.NewReader(body)}}, "secret") != nil {
				continue
			}
			var got struct {
				Model string `json:"model"`
				Usage struct {
					Total int64 `json:"total_tokens"`
				} `json:"usage"`
			}
			text := recorder.Body.Bytes()
			if err := exact.Unmarshal(text, &got, jsontext.AllowDuplicateNames(true)); err != nil || !utf8.Valid(text) || got.Model != "small" {
				t.Fatalf("%q became %q: %v", body, text, err)
			}
			if n := recorder.Header().Get("X-Tokens-Used"); n != strconv.FormatInt(got.Usage.Total, 10) &&
				!(n == "" && got.Usage.Total == 0) {
				t.Fatalf("%q became %q with %s tokens", body, text, n)
			}
		}
	})
}

// A forwarded stream consists of JSON events and always has an end.
func FuzzRelay(f *testing.F) {
	for _, seed := range answerSeeds {
		f.Add([]byte("data: " + seed + "\n\ndata: " + seed + "\n\ndata: [DONE]\n\n"))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, recorder := fuzzed(t, catalog.Chat, `,"stream":true,"stream_options":{"include_usage":true}`)
		if c.relay(upstream.Reply{Status: 200, Length: -1, Framed: true, ContentType: "text/event-stream",
			Body: bufferedBody{bytes.NewReader(body)}}, "secret") != nil {
			return
		}
		text, ended := strings.CutSuffix(recorder.Body.String(), "data: [DONE]\n\n")
		if !ended || !utf8.ValidString(text) {
			t.Fatalf("%q became %q", body, text)
		}
		for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
			data, ok := strings.CutPrefix(event, "data: ")
			if !ok || !json.Valid([]byte(data)) {
				t.Fatalf("%q became %q", body, event)
			}
		}
	})
}

// An upstream's error is reported in the contract's format, with limited length.
func FuzzRefusal(f *testing.F) {
	f.Add(429, "5", "", []byte(`{"error":{"message":"slow","param":"x","code":"y"}}`))
	f.Add(400, "Mon, 02 Jan 2006 15:04:05 GMT", "Mon, 02 Jan 2005 15:04:05 GMT", []byte(`{"detail":"secret"}`))
	f.Add(503, "1e99", "x", []byte(`{"error":`))
	f.Fuzz(func(t *testing.T, status int, after, date string, body []byte) {
		r := upstream.Reply{Status: status, RetryAfter: after, Date: date, Body: bufferedBody{bytes.NewReader(body)}}
		failure := refused(r, "secret")
		apiErr := failure.apiErr
		if !json.Valid(apiErr.JSON()) || apiErr.Status < 400 || apiErr.Status > 504 || apiErr.RetryAfter < 0 ||
			apiErr.RetryAfter > maxRetryAfter {
			t.Fatalf("got %+v", apiErr)
		}
		if strings.Contains(apiErr.Message, "secret") || len(apiErr.Message) > 2*maxMessage {
			t.Fatalf("got %.100q", apiErr.Message)
		}
	})
}
