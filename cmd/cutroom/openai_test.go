package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"cutroom/shared/testkit/servertest"
)

// clientChecks are the names of the checks that the programs in testdata/openai make.
const clientChecks = "models chat limits streaming leaving_a_stream tools json_mode structured_output completions " +
	"errors broken_stream timeouts retries"

// gatewayWorld is a server with keys and upstreams of all kinds, and the variables that
// tell a client about them.
type gatewayWorld struct {
	url string
	// keys are by the names of the variables that the programs read.
	keys map[string]string
}

// newGatewayWorld starts a server whose catalog has, beside the demonstration model,
// upstreams that fail in several ways.
func newGatewayWorld(t *testing.T) gatewayWorld {
	t.Helper()
	const answer = `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop",
		"message":{"role":"assistant","content":"at last"}}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`
	calls := atomic.Int32{}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "Bearer silent":
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		case "Bearer breaking":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,`+
				`"delta":{"content":"so"}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "Bearer agent":
			agentAnswers(w, r)
		case "Bearer flaky":
			if calls.Add(1) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
		}
	}))
	t.Cleanup(upstream.Close)
	nowhere := httptest.NewServer(nil)
	nowhere.Close()

	catalog := string(defaultCatalog(t))
	settings := []string{"CUTROOM_TIERS=" +
		save(t, []byte("default: {}\ndev: {}\ntight: {inference_requests_per_minute: 1}\n"))}
	for _, name := range []string{"silent", "breaking", "flaky", "agent"} {
		catalog += upstreamRow(name, upstream.URL+"/v1", ", secret: env:"+strings.ToUpper(name))
		settings = append(settings, strings.ToUpper(name)+"="+name)
	}
	catalog += upstreamRow("unreachable", nowhere.URL, "")
	settings = append(settings, "CUTROOM_CATALOG="+save(t, []byte(catalog)))

	data := t.TempDir()
	server := start(t, data, settings...)
	world := gatewayWorld{url: server.InferenceURL(), keys: map[string]string{
		"PERMANENT_KEY": servertest.Key, "WRONG_KEY": "ck_unknown-key",
		"TIGHT_KEY":          newKey(t, data, settings[:1], "--account", "tight", "--tier", "tight"),
		"MODELS_TOKEN":       mint(t, server.Client(), "cutroom-echo"),
		"OTHER_MODELS_TOKEN": mint(t, server.Client(), "flaky"),
	}}
	return world
}

// upstreamRow is a row of the catalog for a model with one upstream.
func upstreamRow(id, url, more string) string {
	return fmt.Sprintf("\n  - {id: %s, routes: [chat], context_length: 100000, max_output_length: 50, upstreams: [{url: "+
		"%q, model: m%s}]}\n", id, url, more)
}

// mint makes a client token for one model.
func mint(t *testing.T, client *servertest.Client, model string) string {
	t.Helper()
	body := fmt.Sprintf(`{"expiresIn": 3600, "allowedModels": [%q]}`, model)
	answer, err := client.Call(bounded(t), http.MethodPost, "/v1/client/tokens", strings.NewReader(body), int64(len(body)),
		"Content-Type", "application/json")
	var token struct{ APIKey string }
	if err != nil || answer.Status != 200 || json.Unmarshal(answer.Body, &token) != nil {
		t.Fatalf("mint: %v, %s", err, answer.Body)
	}
	return token.APIKey
}

// run runs a program of testdata/openai or testdata/dialects, and checks that it makes all its checks.
func (w gatewayWorld) run(t *testing.T, command *exec.Cmd, checks string) {
	t.Helper()
	command.Env = append(os.Environ(), "GATEWAY_URL="+w.url, "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*")
	for name, key := range w.keys {
		command.Env = append(command.Env, name+"="+key)
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%v after the checks %q\n%s", err, strings.Fields(stdout.String()), stderr.String())
	}
	if got := strings.Join(strings.Fields(stdout.String()), " "); got != checks {
		t.Errorf("the checks were %q, want %q", got, checks)
	}
}

func TestOpenAIForPython(t *testing.T) {
	t.Parallel()
	world := newGatewayWorld(t)
	world.run(t, exec.CommandContext(bounded(t), pythonProgram(t, "python"),
		filepath.Join("testdata", "openai", "client.py")), clientChecks)
}

// nodeProgram returns the Node program that runs the tests' packages.
func nodeProgram(t *testing.T) string {
	t.Helper()
	packages := filepath.Join(nodeFolder(t), "node_modules")
	if _, err := os.Stat(filepath.Join(packages, "openai")); err != nil {
		t.Fatal("the client library for Node is missing: run scripts/install-test-tools.sh")
	}
	node := filepath.Join(packages, ".bin", "node")
	if _, err := os.Stat(node); err != nil {
		return "node" // there is no packaged one for this system
	}
	return node
}

// nodeFolder is where the packages for Node are installed.
func nodeFolder(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join("..", "..", ".tools", "node"))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestOpenAIForNode(t *testing.T) {
	t.Parallel()
	world := newGatewayWorld(t)
	node := nodeProgram(t)
	source, err := os.Open(filepath.Join("testdata", "openai", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	// A program from stdin finds its imports from its working folder.
	command := exec.CommandContext(bounded(t), node, "--input-type=module", "-")
	command.Dir, command.Stdin = nodeFolder(t), source
	world.run(t, command, clientChecks)
}

// goClient calls the gateway with the client library for Go.
type goClient struct {
	*testing.T
	gatewayWorld
	ctx context.Context
}

func (c goClient) client(key string, options ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(c.url + "/v1"), option.WithAPIKey(c.keys[key]), option.WithMaxRetries(0),
	}, options...)...)
}

const goModel = "cutroom-echo"

func (c goClient) params(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Grüße 🤚🏾, you!")}}
}

// ask returns the answer to a chat.
func (c goClient) ask(params openai.ChatCompletionNewParams) *openai.ChatCompletion {
	c.Helper()
	client := c.client("PERMANENT_KEY")
	answer, err := client.Chat.Completions.New(c.ctx, params)
	if err != nil {
		c.Fatal(err)
	}
	return answer
}

// streamed returns the chunks of a stream put together.
func (c goClient) streamed(params openai.ChatCompletionNewParams) (openai.ChatCompletionAccumulator, error) {
	client := c.client("PERMANENT_KEY")
	stream := client.Chat.Completions.NewStreaming(c.ctx, params)
	defer stream.Close()
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		if !whole.AddChunk(stream.Current()) {
			c.Fatal("a chunk does not fit")
		}
	}
	return whole, stream.Err()
}

// refused checks the error of a call.
func (c goClient) refused(key, model string, change func(*openai.ChatCompletionNewParams), status int, code,
	field string) {
	c.Helper()
	params := c.params(model)
	if change != nil {
		change(&params)
	}
	client := c.client(key)
	_, err := client.Chat.Completions.New(c.ctx, params)
	var refusal *openai.Error
	if !errors.As(err, &refusal) {
		c.Fatalf("%s, %s: %v, want a refusal", key, model, err)
	}
	if refusal.StatusCode != status || refusal.Code != code || refusal.Param != field {
		c.Errorf("%s, %s: status %d, %s, want %d, code %q, param %q", key, model, refusal.StatusCode, refusal.RawJSON(),
			status, code, field)
	}
}

func TestOpenAIForGo(t *testing.T) {
	t.Parallel()
	world := newGatewayWorld(t)
	for name, check := range map[string]func(goClient){
		"models": goClient.models, "chat": goClient.chat, "streaming": goClient.streaming, "tools": goClient.tools,
		"structured output": goClient.structuredOutput, "completions": goClient.completions, "errors": goClient.errors,
		"broken stream": goClient.brokenStream, "timeouts": goClient.timeouts, "retries": goClient.retries,
	} {
		t.Run(name, func(t *testing.T) { check(goClient{t, world, bounded(t)}) })
	}
}

func (c goClient) models() {
	client := c.client("PERMANENT_KEY")
	pages := client.Models.ListAutoPaging(c.ctx)
	var listed []string
	for pages.Next() {
		listed = append(listed, pages.Current().ID)
	}
	if pages.Err() != nil || strings.Join(listed, " ") != "cutroom-echo silent breaking flaky agent unreachable" {
		c.Errorf("listed %v, %v", listed, pages.Err())
	}
	model, err := client.Models.Get(c.ctx, goModel)
	if err != nil || model.JSON.ExtraFields["max_output_length"].Raw() != "4096" {
		c.Errorf("%+v, %v", model, err)
	}
}

func (c goClient) chat() {
	answer := c.ask(c.params(goModel))
	choice := answer.Choices[0]
	if !strings.Contains(choice.Message.Content, "no language model") || choice.FinishReason != "stop" ||
		answer.Model != goModel ||
		answer.Usage.TotalTokens != answer.Usage.PromptTokens+answer.Usage.CompletionTokens || answer.Usage.TotalTokens < 10 {
		c.Errorf("%+v", answer)
	}
	params := c.params(goModel)
	params.MaxCompletionTokens = param.NewOpt[int64](3)
	if cut := c.ask(params); cut.Choices[0].FinishReason != "length" || cut.Usage.CompletionTokens != 3 {
		c.Errorf("%+v", cut)
	}
}

func (c goClient) streaming() {
	answer := c.ask(c.params(goModel))
	params := c.params(goModel)
	params.StreamOptions.IncludeUsage = param.NewOpt(true)
	whole, err := c.streamed(params)
	if err != nil || whole.Choices[0].Message.Content != answer.Choices[0].Message.Content ||
		whole.Usage.TotalTokens != answer.Usage.TotalTokens {
		c.Errorf("streamed %+v, %v", whole.ChatCompletion, err)
	}
}

func (c goClient) tools() {
	params := c.params(goModel)
	params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "get_weather", Parameters: shared.FunctionParameters{
			"type": "object", "properties": map[string]any{"days": map[string]any{"type": "integer", "minimum": 2}},
			"required": []string{"days"},
		},
	})}
	whole, err := c.streamed(params)
	if err != nil {
		c.Fatal(err)
	}
	for _, answer := range []*openai.ChatCompletion{c.ask(params), &whole.ChatCompletion} {
		if calls := answer.Choices[0].Message.ToolCalls; len(calls) != 1 || answer.Choices[0].FinishReason != "tool_calls" ||
			calls[0].Function.Name != "get_weather" || calls[0].Function.Arguments != `{"days":2}` {
			c.Errorf("%+v", answer)
		}
	}
}

func (c goClient) structuredOutput() {
	params := c.params(goModel)
	params.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	if text := c.ask(params).Choices[0].Message.Content; !json.Valid([]byte(text)) {
		c.Errorf("json_object gave %s", text)
	}
	params.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{
		OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "plan", Strict: param.NewOpt(true),
				Schema: map[string]any{
					"type": "object", "properties": map[string]any{"title": map[string]any{"const": "plan"}},
					"required": []string{"title"},
				}},
		}}
	if text := c.ask(params).Choices[0].Message.Content; text != `{"title":"plan"}` {
		c.Errorf("json_schema gave %s", text)
	}
}

func (c goClient) completions() {
	client := c.client("PERMANENT_KEY")
	complete := func(prompt openai.CompletionNewParamsPromptUnion) string {
		params := openai.CompletionNewParams{Model: goModel, Prompt: prompt, Echo: param.NewOpt(true)}
		answer, err := client.Completions.New(c.ctx, params)
		if err != nil {
			c.Fatal(err)
		}
		stream := client.Completions.NewStreaming(c.ctx, params)
		defer stream.Close()
		text := ""
		for stream.Next() {
			text += stream.Current().Choices[0].Text
		}
		if stream.Err() != nil || text != answer.Choices[0].Text {
			c.Errorf("streamed %q, %v, want %q", text, stream.Err(), answer.Choices[0].Text)
		}
		return text
	}
	ids := complete(openai.CompletionNewParamsPromptUnion{OfArrayOfTokens: []int64{15339, 1917}})
	text := complete(openai.CompletionNewParamsPromptUnion{OfString: param.NewOpt("hello world")})
	if ids != text || !strings.HasPrefix(text, "hello world ") {
		c.Errorf("%q by ids, %q by text", ids, text)
	}
}

func (c goClient) errors() {
	c.refused("WRONG_KEY", goModel, nil, 401, "invalid_api_key", "")
	c.refused("PERMANENT_KEY", "nowhere", nil, 404, "model_not_found", "model")
	c.refused("PERMANENT_KEY", goModel, func(p *openai.ChatCompletionNewParams) { p.Temperature = param.NewOpt(3.0) }, 400,
		"decimal_above_max_value", "temperature")
	c.refused("PERMANENT_KEY", "unreachable", nil, 502, "upstream_error", "")
	c.refused("OTHER_MODELS_TOKEN", goModel, nil, 403, "model_not_allowed", "model")
	tight := c.client("TIGHT_KEY")
	if _, err := tight.Chat.Completions.New(c.ctx, c.params(goModel)); err != nil {
		c.Error(err)
	}
	c.refused("TIGHT_KEY", goModel, nil, 429, "rate_limit_exceeded", "")
}

func (c goClient) brokenStream() {
	if _, err := c.streamed(c.params("breaking")); err == nil || !strings.Contains(err.Error(), "error") {
		c.Errorf("the stream ended with %v", err)
	}
}

func (c goClient) timeouts() {
	client := c.client("PERMANENT_KEY", option.WithRequestTimeout(300*time.Millisecond))
	if _, err := client.Chat.Completions.New(c.ctx, c.params("silent")); !errors.Is(err, context.DeadlineExceeded) {
		c.Errorf("error %v", err)
	}
}

func (c goClient) retries() {
	client := c.client("PERMANENT_KEY", option.WithMaxRetries(2))
	answer, err := client.Chat.Completions.New(c.ctx, c.params("flaky"))
	if err != nil || answer.Choices[0].Message.Content != "at last" {
		c.Errorf("%+v, %v", answer, err)
	}
}
