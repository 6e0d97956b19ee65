//go:build llm

package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

// endless is a chat that only a disconnect ends. Reaching max_tokens would take minutes.
const endless = `{"model":%q,"messages":[{"role":"user","content":"go on"}],"stream":true,"max_tokens":32000,"ignore_eos":true,` +
	`"temperature":0}`

// A passed-through response is identical to the model server's, except for the model name and values that differ in
// every response.
func (m languageModel) inPlace(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/messages":              `{"model":"local","max_tokens":12,"temperature":0,"messages":[{"role":"user","content":"Hi"}]}`,
		"/v1/responses":             `{"model":"native","max_output_tokens":12,"temperature":0,"input":"Hi"}`,
		"/v1/messages/count_tokens": `{"model":"local","messages":[{"role":"user","content":"Hi"}]}`,
	} {
		var own, through map[string]any
		m.direct(t, path, strings.Replace(body, "native", "local", 1), &own)
		status, answer := m.ask(t, path, body)
		if err := json.Unmarshal(answer, &through); err != nil || status != 200 {
			t.Fatalf("%s: status %d: %s", path, status, answer)
		}
		for _, changing := range []string{"id", "created_at", "completed_at", "usage", "output"} {
			if _, ok := own[changing]; ok && through[changing] == nil {
				t.Errorf("%s has no %s: %s", path, changing, answer)
			}
			if own[changing] != nil && changing != "output" {
				delete(own, changing)
				delete(through, changing)
			}
		}
		delete(own, "model")
		delete(through, "model")
		for _, answer := range []map[string]any{own, through} {
			if output, ok := answer["output"].([]any); ok {
				delete(output[0].(map[string]any), "id")
			}
		}
		if got, want := fmt.Sprint(through), fmt.Sprint(own); got != want {
			t.Errorf("%s:\n%s\nthe server returns\n%s", path, got, want)
		}
	}
}

// The official Python clients work with all dialects, both passed through to the server and translated by the
// gateway.
func (m languageModel) clients(t *testing.T) {
	world := gatewayWorld{url: m.url, keys: map[string]string{"PERMANENT_KEY": servertest.Key}}
	world.run(t, exec.CommandContext(m.ctx, pythonProgram(t, "python"), filepath.Join("testdata", "llm", "client.py")),
		"chat responses responses_tools responses_in_place messages messages_tools count too_long")
}

// A client cannot generate more tokens than the catalog row allows, on any route and with any of
// the server's names for the limit.
func (m languageModel) clamps(t *testing.T) {
	const chat, input = `"messages":[{"role":"user","content":"Hi"}]`, `"input":"Hi"`
	for _, c := range []struct{ path, fields string }{
		{"/v1/chat/completions", chat + `,"max_tokens":500`},
		{"/v1/chat/completions", chat + `,"max_completion_tokens":500`},
		{"/v1/chat/completions", chat + `,"n_predict":500`},
		{"/v1/chat/completions", chat + `,"n_predict":500,"max_tokens":4`},
		{"/v1/chat/completions", chat + `,"n_predict":-1`},
		{"/v1/completions", `"prompt":"Hi","max_tokens":500`},
		{"/v1/completions", `"prompt":"Hi","n_predict":500`},
		{"/v1/responses", input + `,"max_output_tokens":500`},
		{"/v1/responses", input + `,"max_output_tokens":500,"n_predict":500`},
		{"/v1/responses", input + `,"max_tokens":500`},
		{"/v1/messages", chat + `,"max_tokens":500`},
		{"/v1/messages", chat + `,"max_tokens":500,"n_predict":500`},
	} {
		status, answer := m.ask(t, c.path, `{"model":"clamped","ignore_eos":true,`+c.fields+`}`)
		var got struct {
			Usage struct {
				CompletionTokens int `json:"completion_tokens"`
				OutputTokens     int `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal(answer, &got); err != nil || status != 200 && status != 400 {
			t.Errorf("%s with %s: status %d: %s", c.path, c.fields, status, answer)
		}
		if got.Usage.CompletionTokens > 8 || got.Usage.OutputTokens > 8 {
			t.Errorf("%s with %s generated %s", c.path, c.fields, answer)
		}
	}
}

// If the server rejects a prompt as too long, the row's fallback gets the prompt. If there is no
// fallback, the client gets the server's error.
func (m languageModel) tooLong(t *testing.T) {
	ask := func(model string) *http.Response {
		body := fmt.Sprintf(`{"model":%q,"max_tokens":4,"messages":[{"role":"user","content":%q}]}`, model, strings.Repeat("word ", 200))
		response := m.open(m.ctx, t, m.url+"/v1/chat/completions", servertest.Key, body)
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	narrow := ask("narrow")
	if text, err := io.ReadAll(narrow.Body); err != nil || narrow.StatusCode != 400 || !strings.Contains(string(text), "context") {
		t.Errorf("status %d, %v: %s", narrow.StatusCode, err, text)
	}
	if served := ask("short"); served.StatusCode != 200 || served.Header.Get("X-Served-Model") != "local" {
		t.Errorf("status %d by %q", served.StatusCode, served.Header.Get("X-Served-Model"))
	}
}

func (m languageModel) vectors(t *testing.T) {
	answer, err := m.client.Embeddings.New(m.ctx, openai.EmbeddingNewParams{
		Model: "vectors", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a red fox", "tax", "a red fox"}},
	})
	if err != nil {
		t.Fatal(explain(err))
	}
	if d := answer.Data; len(d) != 3 || len(d[0].Embedding) != 64 || !slices.Equal(d[0].Embedding, d[2].Embedding) ||
		slices.Equal(d[0].Embedding, d[1].Embedding) || answer.Usage.TotalTokens < 10 || answer.Model != "vectors" {
		t.Errorf("got %+v", answer)
	}
	if status, answer := m.ask(t, "/v1/chat/completions", `{"model":"vectors","messages":[{"role":"user","content":"Hi"}]}`); status != 404 {
		t.Errorf("a chat: status %d: %s", status, answer)
	}
}

func (m languageModel) ranks(t *testing.T) {
	status, answer := m.ask(t, "/v1/rerank", `{"model":"ranks","query":"fox","documents":["a red fox","tax law","the fox"],"top_n":2}`)
	var got struct {
		Model   string
		Results []struct {
			Index int
			Score float64 `json:"relevance_score"`
		}
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
		}
	}
	if err := json.Unmarshal(answer, &got); err != nil || status != 200 {
		t.Fatalf("status %d: %s", status, answer)
	}
	if len(got.Results) != 2 || got.Results[0].Score < got.Results[1].Score || got.Model != "ranks" || got.Usage.PromptTokens == 0 {
		t.Errorf("got %s", answer)
	}
}

func (m languageModel) busy(t *testing.T) (n int) {
	t.Helper()
	request, err := http.NewRequestWithContext(m.ctx, http.MethodGet, m.server+"/slots", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+llmKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var slots []struct {
		Busy bool `json:"is_processing"`
	}
	if err := json.NewDecoder(response.Body).Decode(&slots); err != nil || len(slots) != llmCalls {
		t.Fatalf("%v: %+v", err, slots)
	}
	for _, slot := range slots {
		if slot.Busy {
			n++
		}
	}
	return n
}

// generating starts an endless stream and returns a function that disconnects it.
func (m languageModel) generating(t *testing.T, path, body string) (leave func()) {
	t.Helper()
	ctx, leave := context.WithCancel(m.ctx)
	response := m.open(ctx, t, m.url+path, servertest.Key, body)
	t.Cleanup(func() { leave(); response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	for n := 0; n < 12; n++ {
		if !lines.Scan() {
			t.Fatalf("%s: status %d, the stream ended after %d lines: %v", path, response.StatusCode, n, lines.Err())
		}
	}
	return leave
}

// A disconnect stops the generation in every dialect, whether passed through or translated.
func (m languageModel) leaving(t *testing.T) {
	responses := `{"model":%q,"input":"go on","stream":true,"max_output_tokens":32000,"ignore_eos":true,"temperature":0}`
	for _, model := range []string{"local", "translated", "native"} {
		for path, body := range map[string]string{
			"/v1/chat/completions": endless, "/v1/messages": endless, "/v1/responses": responses,
		} {
			eventually(t, "a server that is idle", func() bool { return m.busy(t) == 0 })
			leave := m.generating(t, path, fmt.Sprintf(body, model))
			if got := m.busy(t); got != 1 {
				t.Errorf("%s of %s: the server is processing %d requests", path, model, got)
			}
			leave()
			eventually(t, "the end of the generation: "+path+" of "+model, func() bool { return m.busy(t) == 0 })
		}
	}
}

// While the server is full, requests wait. If the row has no queue, they get a 429.
func (m languageModel) full(t *testing.T) {
	leave := m.generating(t, "/v1/chat/completions", fmt.Sprintf(endless, "translated"))
	response := m.open(m.ctx, t, m.url+"/v1/chat/completions", servertest.Key, fmt.Sprintf(endless, "translated"))
	response.Body.Close()
	if response.StatusCode != 429 || response.Header.Get("Retry-After") == "" {
		t.Errorf("beyond the row's concurrency: status %d", response.StatusCode)
	}
	leave()
	eventually(t, "a server that is idle", func() bool { return m.busy(t) == 0 })
	var leaving []func()
	for range llmCalls {
		leaving = append(leaving, m.generating(t, "/v1/chat/completions", fmt.Sprintf(endless, "local")))
	}
	type answered struct {
		status int
		text   string
	}
	waiting := make(chan answered, 1)
	go func() {
		status, text := m.ask(t, "/v1/messages", `{"model":"local","max_tokens":4,"messages":[{"role":"user","content":"Hi"}]}`)
		waiting <- answered{status, string(text)}
	}()
	eventually(t, "a call that waits", func() bool { return m.metric(t, `cutroom_gateway_queue_waiting{model="local"} 1`) })
	select {
	case got := <-waiting:
		t.Errorf("a call got %+v while the server was full", got)
	default:
	}
	leaving[0]()
	if got := await.Receive(t, "waiting", waiting); got.status != 200 || !strings.Contains(got.text, `"stop_reason"`) {
		t.Errorf("got %+v", got)
	}
	leaving[1]()
}

func (m languageModel) metric(t *testing.T, line string) bool {
	t.Helper()
	client := &servertest.Client{URL: m.url}
	answer, err := client.Get(m.ctx, "/metrics", "Authorization", "Bearer "+llmMetricsKey)
	if err != nil || answer.Status != 200 {
		t.Fatalf("%v, status %d", err, answer.Status)
	}
	return strings.Contains(string(answer.Body), line)
}

// If the model server dies, the stream ends with an error. Later requests get a 502.
func (m languageModel) death(t *testing.T) {
	response := m.open(m.ctx, t, m.url+"/v1/chat/completions", servertest.Key, fmt.Sprintf(endless, "fragile"))
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	if line, err := reader.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Fatalf("%q, %v", line, err)
	}
	if err := m.fragile.Kill(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(reader)
	if err != nil || !strings.Contains(string(rest), `"code":"upstream_error"`) || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("%v: the stream ended with %q", err, rest[max(0, len(rest)-300):])
	}
	status, answer := m.ask(t, "/v1/chat/completions", strings.Replace(fmt.Sprintf(endless, "fragile"), `"stream":true,`, "", 1))
	if status != 502 {
		t.Errorf("status %d: %s", status, answer)
	}
}
