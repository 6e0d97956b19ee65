package demomodel_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cutroom/shared/service/gateway/demomodel"
	"cutroom/shared/service/gateway/tokenizer"
	"cutroom/shared/testkit/alloctest"
	"cutroom/shared/testkit/conformance"
)

func newServer(t *testing.T) *httptest.Server {
	server := httptest.NewServer(demomodel.New(demomodel.Config{
		Tokenizer: tokenizer.New(), Now: func() time.Time { return time.Unix(1_770_000_000, 0) },
		NewID: func() string { return "1" },
	}))
	t.Cleanup(server.Close)
	return server
}

type answer struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index          int
		Text           string
		Message, Delta struct {
			Role      string
			Content   *string
			ToolCalls []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason   string `json:"finish_reason"`
		TokenIDs       []int  `json:"token_ids"`
		PromptTokenIDs []int  `json:"prompt_token_ids"`
	}
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		TotalTokens      int `json:"total_tokens"`
	}
	Error *struct{ Message, Type, Param, Code string }
}

func (a answer) content(t *testing.T, choice int) string {
	t.Helper()
	if len(a.Choices) <= choice || a.Choices[choice].Message.Content == nil {
		t.Fatalf("choice %d has no content: %+v", choice, a)
	}
	return *a.Choices[choice].Message.Content
}

func post(t *testing.T, server *httptest.Server, path, body string, status int) answer {
	t.Helper()
	response, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", response.StatusCode, status, text)
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return a
}

// chat requests a chat completion. more contains additional fields, each preceded by a comma.
func chat(t *testing.T, server *httptest.Server, more string) answer {
	t.Helper()
	return post(t, server, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Grüße 🤚🏾, you!"}]`+
		more+`}`, 200)
}

func complete(t *testing.T, server *httptest.Server, fields string) answer {
	t.Helper()
	return post(t, server, "/v1/completions", `{"model":"m",`+fields+`}`, 200)
}

func streamed(t *testing.T, server *httptest.Server, path, body string) []answer {
	t.Helper()
	response, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header.Get("Content-Type"); response.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("status %d, Content-Type %q", response.StatusCode, got)
	}
	var chunks []answer
	done := false
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case lines.Text() == "":
		case !ok || done:
			t.Fatalf("unexpected line: %q", lines.Text())
		case data == "[DONE]":
			done = true
		default:
			var chunk answer
			if err := json.Unmarshal([]byte(data), &chunk); err != nil {
				t.Fatalf("%v: %s", err, data)
			}
			chunks = append(chunks, chunk)
		}
	}
	if !done || lines.Err() != nil {
		t.Fatalf("the stream has no end: %v", lines.Err())
	}
	return chunks
}

func TestDemoChatExplainsItself(t *testing.T) {
	a := chat(t, newServer(t), "")
	text := a.content(t, 0)
	for _, part := range []string{"demonstration model", "not a language model", "Grüße 🤚🏾, you!", "catalog"} {
		if !strings.Contains(text, part) {
			t.Errorf("the reply does not contain %q: %s", part, text)
		}
	}
	if a.ID != "chatcmpl-1" || a.Object != "chat.completion" || a.Created != 1_770_000_000 || a.Model != "m" ||
		a.Choices[0].Message.Role != "assistant" || a.Choices[0].FinishReason != "stop" {
		t.Errorf("%+v", a)
	}
	if a.Usage.CompletionTokens != tokenizer.New().Count(text) || a.Usage.PromptTokens < 5 ||
		a.Usage.TotalTokens != a.Usage.PromptTokens+a.Usage.CompletionTokens {
		t.Errorf("usage %+v", a.Usage)
	}
}

func TestSameRequestGetsSameReply(t *testing.T) {
	server := newServer(t)
	for _, more := range []string{"", `,"n":3`} {
		if diff := conformance.Diff(chat(t, server, more), chat(t, server, more)); diff != "" {
			t.Errorf("%s: the second reply differs (-first +second):\n%s", more, diff)
		}
	}
	if several := chat(t, server, `,"n":2`); several.content(t, 1) != chat(t, server, "").content(t, 0) {
		t.Errorf("the choices are %+v", several.Choices)
	}
}

func TestLimitsAndStopsApply(t *testing.T) {
	server := newServer(t)
	whole := chat(t, server, "").content(t, 0)
	for _, test := range []struct{ more, finish, text string }{
		{`,"stop":"language"`, "stop", before(whole, "language")},
		{`,"stop":["nowhere to be found","language","model"]`, "stop", before(whole, "model")},
		{`,"stop":null`, "stop", whole},
		{`,"stop":[]`, "stop", whole},
		{`,"max_tokens":100000`, "stop", whole},
	} {
		a := chat(t, server, test.more)
		if got := a.content(t, 0); got != test.text || a.Choices[0].FinishReason != test.finish {
			t.Errorf("%s: %q, %s; want %q, %s", test.more, got, a.Choices[0].FinishReason, test.text, test.finish)
		}
	}
	for _, more := range []string{`,"max_tokens":4`, `,"max_completion_tokens":4`,
		`,"max_completion_tokens":4,"max_tokens":9`, `,"max_tokens":4,"stop":"language"`} {
		a := chat(t, server, more)
		if got := a.content(t, 0); !strings.HasPrefix(whole, got) || got == "" || a.Choices[0].FinishReason != "length" ||
			a.Usage.CompletionTokens != 4 {
			t.Errorf("%s: %q, %s, %+v", more, got, a.Choices[0].FinishReason, a.Usage)
		}
	}
}

func TestIncompleteCharactersAreNotSent(t *testing.T) {
	server := newServer(t)
	for n := range 60 {
		a := complete(t, server, `"prompt":"🤚🏾🤚🏾🤚🏾","max_tokens":`+string(must(json.Marshal(n+1))))
		if strings.ContainsRune(a.Choices[0].Text, '\uFFFD') || a.Usage.CompletionTokens > n+1 {
			t.Errorf("%d tokens: %q", n+1, a.Choices[0].Text)
		}
	}
}

func TestStreamMatchesTheReply(t *testing.T) {
	server := newServer(t)
	const fields = `"messages":[{"role":"user","content":"Grüße 🤚🏾, you!"}],"n":2`
	whole := post(t, server, "/v1/chat/completions", `{"model":"m",`+fields+`}`, 200)
	chunks := streamed(t, server, "/v1/chat/completions", `{"model":"m",`+fields+
		`,"stream":true,"stream_options":{"include_usage":true}}`)
	texts, finishes := make([]string, 2), make([]string, 2)
	for i, chunk := range chunks {
		if chunk.Object != "chat.completion.chunk" || chunk.Model != "m" {
			t.Fatalf("chunk %d is %+v", i, chunk)
		}
		for _, choice := range chunk.Choices {
			if choice.Delta.Content != nil {
				texts[choice.Index] += *choice.Delta.Content
			}
			finishes[choice.Index] += choice.FinishReason
		}
		if last := i == len(chunks)-1; last != (chunk.Usage != nil) || last != (len(chunk.Choices) == 0) {
			t.Fatalf("chunk %d of %d has usage %+v and %d choices", i, len(chunks), chunk.Usage, len(chunk.Choices))
		}
	}
	for i := range texts {
		if texts[i] != whole.content(t, i) || finishes[i] != "stop" {
			t.Errorf("choice %d streamed as %q, %q", i, texts[i], finishes[i])
		}
	}
	if *chunks[len(chunks)-1].Usage != *whole.Usage || len(chunks) < 20 {
		t.Errorf("%d chunks, usage %+v, want %+v", len(chunks), chunks[len(chunks)-1].Usage, whole.Usage)
	}
	for _, chunk := range streamed(t, server, "/v1/chat/completions", `{"model":"m",`+fields+`,"stream":true}`) {
		if chunk.Usage != nil {
			t.Fatal("unrequested usage")
		}
	}
}

const weather = `{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}}},
	{"type":"function","function":{"name":"get_time"}}`

func TestToolsAreCalled(t *testing.T) {
	server := newServer(t)
	for _, test := range []struct{ choice, function, arguments string }{
		{``, "get_weather", `{"city":"example","days":1}`},
		{`,"tool_choice":"auto"`, "get_weather", `{"city":"example","days":1}`},
		{`,"tool_choice":"required"`, "get_weather", `{"city":"example","days":1}`},
		{`,"tool_choice":{"type":"function","function":{"name":"get_time"}}`, "get_time", `{}`},
		{`,"tool_choice":"none"`, "", ""},
	} {
		a := chat(t, server, `,"tools":[`+weather+`]`+test.choice)
		calls := a.Choices[0].Message.ToolCalls
		if test.function == "" {
			if len(calls) != 0 || a.content(t, 0) == "" {
				t.Errorf("%s: %+v", test.choice, a)
			}
			continue
		}
		if len(calls) != 1 || calls[0].ID == "" || calls[0].Type != "function" || a.Choices[0].FinishReason != "tool_calls" ||
			calls[0].Function.Name != test.function || calls[0].Function.Arguments != test.arguments ||
			a.Choices[0].Message.Content != nil {
			t.Errorf("%s: %+v", test.choice, a)
		}
	}
}

func TestToolResultIsUsed(t *testing.T) {
	a := post(t, newServer(t), "/v1/chat/completions", `{"model":"m","tools":[`+weather+
		`],"messages":[{"role":"user","content":"Weather?"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"get_weather","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c","content":"sunny"}]}`, 200)
	if text := a.content(t, 0); !strings.Contains(text, "tool answered “sunny”") {
		t.Error(text)
	}
}

func TestStructuredOutputMatchesSchema(t *testing.T) {
	server := newServer(t)
	var object map[string]any
	text := chat(t, server, `,"response_format":{"type":"json_object"}`).content(t, 0)
	if json.Unmarshal([]byte(text), &object) != nil {
		t.Errorf("json_object gives %s", text)
	} else if object["last_message"] != "Grüße 🤚🏾, you!" {
		t.Errorf("json_object gives %v", object)
	}
	a := chat(t, server, `,"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object",`+
		`"properties":{"n":{"type":"integer"}},"required":["n"]}}}`)
	if text := a.content(t, 0); text != `{"n":1}` {
		t.Errorf("json_schema gives %s", text)
	}
	text = chat(t, server, `,"response_format":{"type":"text"}`).content(t, 0)
	if !strings.Contains(text, "not a language model") {
		t.Errorf("text gives %s", text)
	}
}

func TestInvalidRequestsAreRejected(t *testing.T) {
	server := newServer(t)
	const messages = `{"model":"m","messages":[{"role":"user","content":"hi"}]`
	long := strings.Repeat("word ", demomodel.ContextLength)
	for _, test := range []struct{ path, body, param, code string }{
		{"/v1/chat/completions", `{`, "", ""},
		{"/v1/chat/completions", `{"model":"m"}`, "messages", ""},
		{"/v1/chat/completions", messages + `,"n":-1}`, "n", ""},
		{"/v1/chat/completions", messages + `,"n":1000000}`, "n", ""},
		{"/v1/chat/completions", messages + `,"max_tokens":"many"}`, "max_tokens", ""},
		{"/v1/chat/completions", messages + `,"tools":[` + weather + `],"tool_choice":{"function":{"name":"other"}}}`, "tool_choice", ""},
		{"/v1/chat/completions", messages + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"not":{}}}}}`, "response_format", ""},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"` + long + `"}]}`, "messages", "context_length_exceeded"},
		{"/v1/completions", `{"model":"m"}`, "prompt", ""},
		{"/v1/completions", `{"model":"m","prompt":[123456789]}`, "prompt", ""},
		{"/v1/completions", `{"model":"m","prompt":[-1]}`, "prompt", ""},
		{"/v1/completions", `{"model":"m","prompt":["a","b","c"],"n":100}`, "n", ""},
	} {
		a := post(t, server, test.path, test.body, 400)
		if a.Error == nil || a.Error.Type != "invalid_request_error" || a.Error.Param != test.param ||
			a.Error.Code != test.code || a.Error.Message == "" {
			t.Errorf("%.100s: %+v", test.body, a.Error)
		}
	}
}

func before(text, end string) string {
	text, _, _ = strings.Cut(text, end)
	return text
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// A request made of the smallest elements uses at most 20 bytes of memory per byte.
func TestRequestsUseLittleMemory(t *testing.T) {
	server := newServer(t)
	address := strings.TrimPrefix(server.URL, "http://")
	const most = 1 << 20
	for path, fields := range map[string][]string{
		"chat/completions": {"messages", "tools"}, "completions": {"prompt"}, "embeddings": {"input"},
	} {
		for _, field := range fields {
			for name, element := range map[string]string{
				"numbers": `0`, "texts": `""`, "objects": `{}`, "lists of numbers": `[0]`,
				"parts": `{"role":"user","content":[{}]}`, "calls": `{"role":"assistant","tool_calls":[{}]}`,
			} {
				head := `{"model":"a","max_tokens":1,"query":"a","text_1":"a","messages":[{"role":"user","content":"a"}],"prompt":"a","` + field + `":[`
				body := alloctest.Filled(most, head, element+",", element+"]}")
				request := alloctest.Request("POST /v1/"+path, body, "Content-Type: application/json")
				t.Run(path+" "+field+" of "+name, func(t *testing.T) {
					alloctest.Check(t, len(request), func() { alloctest.Send(t, address, request) })
				})
			}
		}
		for name, body := range map[string]string{
			"members": alloctest.Numbered(most, `{"model":"a"`, `,"%x":0`, `}`), "deep": strings.Repeat("[", most),
			"parts of a message": alloctest.Filled(most, `{"messages":[{"role":"user","content":[`, `{},`, `{}]}]}`),
			"calls of a message": alloctest.Filled(most, `{"messages":[{"role":"user","tool_calls":[`, `{},`, `{}]}]}`),
			"schema": alloctest.Numbered(most, `{"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema",`+
				`"json_schema":{"schema":{"type":"object","properties":{"a":{}`, `,"%x":{}`, `}}}}}`),
		} {
			request := alloctest.Request("POST /v1/"+path, body, "Content-Type: application/json")
			t.Run(path+" "+name, func(t *testing.T) {
				alloctest.Check(t, len(request), func() { alloctest.Send(t, address, request) })
			})
		}
	}
}

type pieces struct {
	httptest.ResponseRecorder
	largest int
}

func (p *pieces) Write(text []byte) (int, error) {
	p.largest = max(p.largest, len(text))
	return len(text), nil
}

// A small request for a large response is answered in small pieces or rejected.
func TestLargeResponsesAreSentInPieces(t *testing.T) {
	server := newServer(t).Config.Handler
	texts := `["a"` + strings.Repeat(`,"a"`, 2047) + `]`
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/embeddings", `{"model":"m","input":` + texts + `,"dimensions":4096}`, 400},
		{"/v1/embeddings", `{"model":"m","input":` + texts + `}`, 200},
		{"/v1/completions", `{"model":"m","n":128,"echo":true,"return_token_ids":true,"prompt":"` + strings.Repeat("a ", 10_000) + `"}`, 200},
	} {
		w := &pieces{ResponseRecorder: *httptest.NewRecorder()}
		server.ServeHTTP(w, httptest.NewRequest("POST", c.path, strings.NewReader(c.body)))
		if w.Code != c.status || w.largest > 256<<10 {
			t.Errorf("%s: %d, at most %d bytes at once", c.path, w.Code, w.largest)
		}
	}
}

func TestLongComputationsAreRejected(t *testing.T) {
	server := newServer(t)
	long := strings.Repeat("a ", 1<<19)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":"` + long + `"}]}`,
		"/v1/completions":      `{"model":"m","prompt":"` + long + `"}`,
		"/v1/embeddings":       `{"model":"m","input":"` + long + `"}`,
	} {
		if status, text := ask(t, server.URL+path, body); status != 400 {
			t.Errorf("%s: %d %.100s", path, status, text)
		}
	}
	schema := func(description string) string {
		return `{"model":"m","messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema","json_schema":{"schema":` +
			`{"type":"object","required":["a"` + strings.Repeat(`,"a"`, 8000) + `],"properties":{"a":{"type":"null","description":"` +
			description + `"}}}}}}`
	}
	if status, text := ask(t, server.URL+"/v1/chat/completions", schema(long)); status != 400 {
		t.Errorf("a long schema: %d %.100s", status, text)
	}
	status, text := ask(t, server.URL+"/v1/chat/completions", schema(strings.Repeat("d", 20_000)))
	if status != 200 || !strings.Contains(text, `{\"a\":null}`) {
		t.Errorf("a repeated name: %d %.300s", status, text)
	}
}
