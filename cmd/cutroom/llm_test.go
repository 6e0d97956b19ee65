//go:build llm

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

// Settings of the model servers: tokens per request, concurrent requests, and keys.
const (
	llmContext    = 32768
	llmCalls      = 2
	llmKey        = "key-of-the-model-servers"
	llmMetricsKey = "key-of-the-metrics"
)

// The model is tiny and has random weights. The gateway's other models use fewer of the server's
// features, or run on other kinds of servers.
func TestGatewayMatchesModelServer(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	made, err := exec.CommandContext(bounded(t), filepath.Join(root, ".tools", "llm", "bin", "python"),
		filepath.Join("testdata", "llm", "make_model.py"), folder).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, made)
	}
	m := startLanguageModel(t, root, folder)
	for _, c := range []struct {
		name  string
		check func(languageModel, *testing.T)
	}{
		{"chat", languageModel.chat}, {"completions", languageModel.completions}, {"streaming", languageModel.streaming},
		{"stop", languageModel.stop}, {"usage", languageModel.usage}, {"in place", languageModel.inPlace},
		{"clients", languageModel.clients}, {"clamps", languageModel.clamps}, {"too long", languageModel.tooLong},
		{"vectors", languageModel.vectors}, {"ranks", languageModel.ranks}, {"leaving", languageModel.leaving},
		{"full", languageModel.full}, {"death", languageModel.death},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(m, t) })
	}
}

type languageModel struct {
	ctx context.Context
	// url is the gateway's URL. server is the URL of the server that has the model "local".
	url, server string
	client      openai.Client
	fragile     *os.Process
}

func freePort(t *testing.T) int {
	t.Helper()
	address, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := net.SplitHostPort(address)
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// serveModel serves a model file until the test ends. It returns the server's URL and process.
func serveModel(t *testing.T, root, gguf string, tokens int) (string, *os.Process) {
	t.Helper()
	port := freePort(t)
	command := exec.Command(filepath.Join(root, ".tools", "llm", "bin", "python"),
		filepath.Join(root, "scripts", "llm-server.py"), "serve", gguf, fmt.Sprint(tokens), "1", fmt.Sprint(port))
	command.Env = append(os.Environ(), "LLM_KEY="+llmKey, "LLM_THREADS=1")
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }() // it fails if a test has killed the server
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(await.Max):
			_ = command.Process.Kill()
			t.Errorf("the server of %s did not end", gguf)
		}
	})
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	eventually(t, "the server of "+gguf, func() bool {
		select {
		case <-ended:
			t.Fatalf("the model server exited: %s", &said)
		default:
		}
		response, err := http.Get(url + "/health")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == 200
	})
	return url, command.Process
}

// startLanguageModel runs `make run-llm` until the test ends, and stops it with SIGINT.
func startLanguageModel(t *testing.T, root, folder string) languageModel {
	t.Helper()
	gguf := filepath.Join(folder, "chat.gguf")
	vectors, _ := serveModel(t, root, filepath.Join(folder, "embeddings.gguf"), 512)
	ranks, _ := serveModel(t, root, filepath.Join(folder, "ranks.gguf"), 512)
	short, _ := serveModel(t, root, gguf, 256)
	dying, fragile := serveModel(t, root, gguf, llmContext)
	port := freePort(t)
	m := languageModel{ctx: bounded(t), server: fmt.Sprintf("http://127.0.0.1:%d", port), fragile: fragile}
	row := func(id, routes, more, url string) string {
		return fmt.Sprintf("  - {id: %s, routes: [%s], context_length: %d%s, upstreams: [{url: \"%s/v1\", model: local, "+
			"secret: \"env:LLM_KEY\", concurrency: 1}]}\n", id, routes, llmContext, more, url)
	}
	generates := fmt.Sprintf(", max_tokens_field: n_predict, max_output_length: %d", llmContext)
	rows := row("translated", "chat", generates, m.server) + row("native", "chat, responses", generates, m.server) +
		row("clamped", "chat, completions, responses, messages", ", max_tokens_field: n_predict, max_output_length: 8", m.server) +
		row("vectors", "embeddings", "", vectors) + row("ranks", "rerank", "", ranks) +
		row("fragile", "chat", generates, dying) + row("narrow", "chat", generates, short) + row("short", "chat", generates+", fallbacks: [local]", short)
	catalog := strings.Replace(string(defaultCatalog(t)), "\ninference:\n", "\ninference:\n"+rows, 1)
	command := exec.Command("make", "--no-print-directory", "run-llm", "GGUF="+gguf)
	command.Dir = root
	command.Env = append(os.Environ(), "CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_INFERENCE_ADDR=127.0.0.1:0",
		"CUTROOM_DATA="+t.TempDir(), "CUTROOM_CATALOG="+save(t, []byte(catalog)), "CUTROOM_DEV_KEY="+servertest.Key, "CUTROOM_METRICS_KEY="+llmMetricsKey,
		fmt.Sprint("LLM_CONTEXT=", llmContext), fmt.Sprint("LLM_CALLS=", llmCalls), fmt.Sprint("LLM_PORT=", port),
		"LLM_KEY="+llmKey, "LLM_THREADS=1")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	printed, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer printed.Close()
	command.Stdout, command.Stderr = printed, printed
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGINT) // fails if the command has already ended
		select {
		case <-ended:
		case <-time.After(await.Max):
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			t.Error("make run-llm did not end")
		}
		if left := processesOn(t, fmt.Sprintf("serve\x00%s\x00%d\x00%d", gguf, llmContext, llmCalls)); len(left) > 0 {
			t.Errorf("still running after the stop: %q", left)
		}
	})
	said := regexp.MustCompile(`(?m)^\s*Inference\s+(http://\S+)$`)
	eventually(t, "the gateway prints its address", func() bool {
		text, err := os.ReadFile(printed.Name())
		select {
		case <-ended:
			ended <- nil
			t.Fatalf("make run-llm exited: %s", text)
		default:
		}
		if found := said.FindSubmatch(text); err == nil && found != nil {
			m.url = string(found[1])
		}
		return m.url != ""
	})
	m.client = openai.NewClient(option.WithBaseURL(m.url+"/v1"), option.WithAPIKey(servertest.Key), option.WithMaxRetries(0))
	return m
}

func (m languageModel) params() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "local", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Grüße!")},
		MaxTokens: param.NewOpt[int64](20), Temperature: param.NewOpt(0.0), Seed: param.NewOpt[int64](1),
	}
}

func explain(err error) string {
	var failure *openai.Error
	if errors.As(err, &failure) {
		return failure.RawJSON()
	}
	return err.Error()
}

func (m languageModel) direct(t *testing.T, path, body string, into any) {
	t.Helper()
	if status, answer := m.post(t, m.server+path, llmKey, body); status != 200 || json.Unmarshal(answer, into) != nil {
		t.Fatalf("status %d: %s", status, answer)
	}
}

func (m languageModel) ask(t *testing.T, path, body string) (status int, answer []byte) {
	t.Helper()
	return m.post(t, m.url+path, servertest.Key, body)
}

func (m languageModel) post(t *testing.T, url, key, body string) (status int, answer []byte) {
	t.Helper()
	response := m.open(m.ctx, t, url, key, body)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

// open sends a request and returns the response without reading its body.
func (m languageModel) open(ctx context.Context, t *testing.T, url, key, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func (m languageModel) chat(t *testing.T) {
	answer, err := m.client.Chat.Completions.New(m.ctx, m.params())
	if err != nil {
		t.Fatal(explain(err))
	}
	var own openai.ChatCompletion
	m.direct(t, "/v1/chat/completions",
		`{"model":"local","messages":[{"role":"user","content":"Grüße!"}],"max_tokens":20,"temperature":0,"seed":1}`, &own)
	if answer.Choices[0].Message.Content != own.Choices[0].Message.Content ||
		answer.Choices[0].FinishReason != own.Choices[0].FinishReason ||
		answer.Usage.PromptTokens != own.Usage.PromptTokens || answer.Usage.CompletionTokens != own.Usage.CompletionTokens ||
		own.Usage.CompletionTokens == 0 {
		t.Errorf("the gateway returned %+v, the server %+v", answer, own)
	}
}

func (m languageModel) completions(t *testing.T) {
	answer, err := m.client.Completions.New(m.ctx, openai.CompletionNewParams{
		Model: "local", Prompt: openai.CompletionNewParamsPromptUnion{OfString: param.NewOpt("Once")},
		MaxTokens:   param.NewOpt[int64](12),
		Temperature: param.NewOpt(0.0),
	})
	if err != nil {
		t.Fatal(explain(err))
	}
	var own openai.Completion
	m.direct(t, "/v1/completions", `{"model":"local","prompt":"Once","max_tokens":12,"temperature":0}`, &own)
	if answer.Choices[0].Text != own.Choices[0].Text || answer.Usage.TotalTokens != own.Usage.TotalTokens ||
		own.Usage.TotalTokens == 0 {
		t.Errorf("the gateway returned %+v, the server %+v", answer, own)
	}
}

func (m languageModel) streaming(t *testing.T) {
	whole, err := m.client.Chat.Completions.New(m.ctx, m.params())
	if err != nil {
		t.Fatal(err)
	}
	params := m.params()
	params.StreamOptions.IncludeUsage = param.NewOpt(true)
	stream := m.client.Chat.Completions.NewStreaming(m.ctx, params)
	defer stream.Close()
	var streamed openai.ChatCompletionAccumulator
	for stream.Next() {
		streamed.AddChunk(stream.Current())
	}
	if stream.Err() != nil || len(streamed.Choices) == 0 || streamed.Usage.CompletionTokens == 0 {
		t.Fatalf("%+v, %v", streamed, stream.Err())
	}
	if got, want := streamed.Choices[0], whole.Choices[0]; got.Message.Content != want.Message.Content ||
		got.FinishReason != want.FinishReason {
		t.Errorf("streamed %+v, want %+v", got, want)
	}
}

func (m languageModel) stop(t *testing.T) {
	whole, err := m.client.Chat.Completions.New(m.ctx, m.params())
	if err != nil {
		t.Fatal(err)
	}
	text := []rune(whole.Choices[0].Message.Content)
	if len(text) < 3 {
		t.Fatalf("the model generated %q, which is too short to test a stop sequence", string(text))
	}
	params := m.params()
	params.Stop.OfStringArray = []string{string(text[2:3])}
	stopped, err := m.client.Chat.Completions.New(m.ctx, params)
	if err != nil || stopped.Choices[0].FinishReason != "stop" ||
		strings.ContainsRune(stopped.Choices[0].Message.Content, text[2]) {
		t.Errorf("stopped at %q of %q: %+v, %v", text[2], string(text), stopped, err)
	}
}

func (m languageModel) usage(t *testing.T) {
	total := func() (tokens int64) {
		client := &servertest.Client{URL: m.url}
		answer, err := client.Get(m.ctx, "/v1/usage", "Authorization", "Bearer "+servertest.Key)
		var used struct {
			Data []struct {
				PromptTokens     int64 `json:"prompt_tokens"`
				CompletionTokens int64 `json:"completion_tokens"`
			}
		}
		if err != nil || json.NewDecoder(bytes.NewReader(answer.Body)).Decode(&used) != nil {
			t.Fatalf("%v, %s", err, answer.Body)
		}
		for _, row := range used.Data {
			tokens += row.PromptTokens + row.CompletionTokens
		}
		return tokens
	}
	before := total()
	answer, err := m.client.Chat.Completions.New(m.ctx, m.params())
	if err != nil {
		t.Fatal(err)
	}
	if metered := total() - before; metered != answer.Usage.TotalTokens {
		t.Errorf("%d tokens were metered, the response has %d", metered, answer.Usage.TotalTokens)
	}
}
