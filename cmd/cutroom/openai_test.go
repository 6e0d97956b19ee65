package main_test

import (
	"bytes"
	"encoding/json"
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

	"cutroom/shared/testkit/servertest"
)

const clientChecks = "models chat limits streaming leaving_a_stream tools json_mode structured_output completions " +
	"errors broken_stream timeouts retries"

// gatewayWorld is a server with all kinds of keys and upstreams.
type gatewayWorld struct {
	url string
	// keys maps the environment variables that the client programs read to keys.
	keys map[string]string
}

// newGatewayWorld starts a server whose upstreams include the demonstration model and failing upstreams.
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
		case "Bearer audio":
			audioAnswers(w, r)
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
	settings := []string{"CUTROOM_TIERS=" + save(t, []byte("default: {}\ndev: {}\ntight: {inference_requests_per_minute: 1}\n"))}
	for _, name := range []string{"silent", "breaking", "flaky", "agent"} {
		catalog += upstreamRow(name, upstream.URL+"/v1", ", secret: env:"+strings.ToUpper(name))
		settings = append(settings, strings.ToUpper(name)+"="+name)
	}
	catalog += upstreamRow("unreachable", nowhere.URL, "")
	for id, route := range map[string]string{"ear": "transcriptions", "voice": "speech"} {
		catalog += fmt.Sprintf("  - {id: %s, routes: [%s], upstreams: [{url: %q, secret: env:AUDIO}]}\n", id, route, upstream.URL)
	}
	settings = append(settings, "AUDIO=audio", "CUTROOM_CATALOG="+save(t, []byte(catalog)))

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

// audioAnswers transcribes a file to its name, size and language.
func audioAnswers(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/audio/speech" {
		w.Header().Set("Content-Type", "audio/mpeg")
		fmt.Fprint(w, "ID3"+strings.Repeat("x", 100_000))
		return
	}
	kind, body := "application/json", `{"text":"%[1]s","usage":{"type":"duration","seconds":3}}`
	if r.FormValue("stream") == "true" {
		kind = "text/event-stream"
		body = "data: {\"type\":\"transcript.text.delta\",\"delta\":\"%[1]s\"}\n\ndata: {\"type\":\"transcript.text.done\",\"text\":\"%[1]s\"}\n\n"
	} else if r.FormValue("response_format") == "text" {
		kind, body = "text/plain", "%[1]s"
	}
	w.Header().Set("Content-Type", kind)
	if file, header, err := r.FormFile("file"); err == nil {
		defer file.Close()
		fmt.Fprintf(w, body, fmt.Sprint(header.Filename, " ", header.Size, " ", r.FormValue("language")))
	}
}

func upstreamRow(id, url, more string) string {
	return fmt.Sprintf("\n  - {id: %s, routes: [chat], context_length: 100000, max_output_length: 50, upstreams: [{url: %q, model: m%s}]}\n",
		id, url, more)
}

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

// run fails the test unless the program passes all its checks.
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

func TestOpenAIClientForPythonWorks(t *testing.T) {
	t.Parallel()
	world := newGatewayWorld(t)
	world.run(t, exec.CommandContext(bounded(t), pythonProgram(t, "python"), filepath.Join("testdata", "openai", "client.py")), clientChecks+" audio")
}

func nodeProgram(t *testing.T) string {
	t.Helper()
	packages := filepath.Join(nodeFolder(t), "node_modules")
	if _, err := os.Stat(filepath.Join(packages, "openai")); err != nil {
		t.Fatal("the client library for Node is missing: run scripts/install-test-tools.sh")
	}
	node := filepath.Join(packages, ".bin", "node")
	if _, err := os.Stat(node); err != nil {
		return "node" // there is no Node package for this system
	}
	return node
}

func nodeFolder(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join("..", "..", ".tools", "node"))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestOpenAIClientForNodeWorks(t *testing.T) {
	t.Parallel()
	world := newGatewayWorld(t)
	node := nodeProgram(t)
	source, err := os.Open(filepath.Join("testdata", "openai", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	// A program read from stdin looks for its imports in its working folder.
	command := exec.CommandContext(bounded(t), node, "--input-type=module", "-")
	command.Dir, command.Stdin = nodeFolder(t), source
	world.run(t, command, clientChecks)
}

func TestOpenAIClientsEditMedia(t *testing.T) {
	t.Parallel()
	media, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	world := gatewayWorld{url: start(t, t.TempDir()).InferenceURL(), keys: map[string]string{
		"PERMANENT_KEY": servertest.Key, "WRONG_KEY": "ck_unknown-key", "MEDIA": media,
	}}
	world.run(t, exec.CommandContext(bounded(t), pythonProgram(t, "python"), filepath.Join("testdata", "openai", "media.py"), media),
		"models edit stream generate video videos errors")
	for _, path := range []string{"/v1/images", "/v1/images/", "/v1/images/edits/1", "/v1/shares"} {
		request, _ := http.NewRequestWithContext(bounded(t), http.MethodPost, world.url+path, nil)
		if got, err := http.DefaultTransport.RoundTrip(request); err != nil || got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}

	world.url = start(t, t.TempDir()).InferenceURL()
	source, err := os.Open(filepath.Join("testdata", "openai", "media.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	command := exec.CommandContext(bounded(t), nodeProgram(t), "--input-type=module", "-")
	command.Dir, command.Stdin = nodeFolder(t), source
	world.run(t, command, "edit generate video errors")
}
