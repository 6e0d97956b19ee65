//go:build llm

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"cutroom/shared/testkit/servertest"
)

// TestLanguageModel serves a tiny model with random weights as `make run-llm` does, and
// compares the gateway's answers with the model server's own.
func TestLanguageModel(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	gguf := filepath.Join(t.TempDir(), "tiny.gguf")
	made, err := exec.CommandContext(bounded(t), filepath.Join(root, ".tools", "llm", "bin", "python"),
		filepath.Join("testdata", "llm", "make_model.py"), gguf).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, made)
	}
	m := startLanguageModel(t, root, gguf)
	for name, check := range map[string]func(languageModel, *testing.T){
		"chat": languageModel.chat, "completions": languageModel.completions, "streaming": languageModel.streaming,
		"stop": languageModel.stop, "usage": languageModel.usage,
	} {
		t.Run(name, func(t *testing.T) { check(m, t) })
	}
}

// languageModel is a gateway with a real model server behind it.
type languageModel struct {
	ctx context.Context
	// url is the gateway's URL, server the model server's.
	url, server string
	client      openai.Client
}

// startLanguageModel runs `make run-llm` until the end of the test, and ends it with
// Ctrl-C's signal.
func startLanguageModel(t *testing.T, root, gguf string) languageModel {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	command := exec.Command("make", "--no-print-directory", "run-llm", "GGUF="+gguf)
	command.Dir = root
	command.Env = append(os.Environ(), "CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_INFERENCE_ADDR=127.0.0.1:0",
		"CUTROOM_DATA="+t.TempDir(),
		"CUTROOM_DEV_KEY="+servertest.Key, "LLM_CONTEXT=512", fmt.Sprint("LLM_PORT=", port))
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
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGINT) // it is gone already if it failed
		select {
		case <-ended:
		case <-time.After(patience):
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			t.Error("it did not end")
		}
		if left := processesOn(t, gguf); len(left) > 0 {
			t.Errorf("still running after the stop: %q", left)
		}
	})
	said := regexp.MustCompile(`(?m)^\s*Inference\s+(http://\S+)$`)
	var url string
	eventually(t, "the gateway says where it is", func() bool {
		text, err := os.ReadFile(printed.Name())
		select {
		case <-ended:
			ended <- nil
			t.Fatalf("it ended: %s", text)
		default:
		}
		if found := said.FindSubmatch(text); err == nil && found != nil {
			url = string(found[1])
		}
		return url != ""
	})
	return languageModel{
		ctx: bounded(t), url: url, server: fmt.Sprintf("http://127.0.0.1:%d", port),
		client: openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(servertest.Key), option.WithMaxRetries(0)),
	}
}

func (m languageModel) params() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "local", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Grüße!")},
		MaxTokens: param.NewOpt[int64](20), Temperature: param.NewOpt(0.0), Seed: param.NewOpt[int64](1),
	}
}

// explain returns an error with the gateway's answer.
func explain(err error) string {
	var refusal *openai.Error
	if errors.As(err, &refusal) {
		return refusal.RawJSON()
	}
	return err.Error()
}

// direct asks the model server directly.
func (m languageModel) direct(t *testing.T, path, body string, into any) {
	t.Helper()
	response, err := http.Post(m.server+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil || response.StatusCode != 200 {
		t.Fatalf("status %d, %v", response.StatusCode, err)
	}
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
		t.Errorf("the gateway says %+v, the server %+v", answer, own)
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
		t.Errorf("the gateway says %+v, the server %+v", answer, own)
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
		t.Fatalf("the model says %q, which is too short to stop it", string(text))
	}
	params := m.params()
	params.Stop.OfStringArray = []string{string(text[2:3])}
	stopped, err := m.client.Chat.Completions.New(m.ctx, params)
	if err != nil || stopped.Choices[0].FinishReason != "stop" ||
		strings.ContainsRune(stopped.Choices[0].Message.Content, text[2]) {
		t.Errorf("stopped at %q of %q: %+v, %v", text[2], string(text), stopped, err)
	}
}

// The usage that is metered is the one in the answers.
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
		t.Errorf("%d tokens were metered, the answer says %d", metered, answer.Usage.TotalTokens)
	}
}
