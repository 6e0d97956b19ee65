package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

func gatewayOf(server *servertest.Server, key string) func(ctx context.Context, method, path, body string) (servertest.Answer, error) {
	client := &servertest.Client{URL: server.InferenceURL()}
	return func(ctx context.Context, method, path, body string) (servertest.Answer, error) {
		if body == "" {
			return client.Call(ctx, method, path, nil, 0, "Authorization", "Bearer "+key)
		}
		return client.Call(ctx, method, path, strings.NewReader(body), int64(len(body)), "Authorization", "Bearer "+key)
	}
}

const helloChat = `{"model": "cutroom-echo", "messages": [{"role": "user", "content": "Hello!"}]}`

func usedOf(t *testing.T, server *servertest.Server, key string) (requests, tokens int) {
	t.Helper()
	answer, err := gatewayOf(server, key)(bounded(t), http.MethodGet, "/v1/usage", "")
	var used struct {
		Data []struct {
			Requests         int `json:"requests"`
			PromptTokens     int `json:"prompt_tokens"`
			CompletionTokens int `json:"completion_tokens"`
		}
	}
	if err != nil || answer.Status != 200 || json.Unmarshal(answer.Body, &used) != nil {
		t.Fatalf("usage: %v, %d %s", err, answer.Status, answer.Body)
	}
	for _, row := range used.Data {
		requests, tokens = requests+row.Requests, tokens+row.PromptTokens+row.CompletionTokens
	}
	return requests, tokens
}

// Usage that GET /v1/usage returned before the kill is still returned after it. Accounts see only their own usage.
func TestUsageSurvivesKill(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	other := newKey(t, data, nil, "--account", "other")
	server := start(t, data)
	chat := gatewayOf(server, servertest.Key)
	const calls = 20
	billed := 0
	for range calls {
		answer, err := chat(bounded(t), http.MethodPost, "/v1/chat/completions", helloChat)
		if err != nil || answer.Status != 200 {
			t.Fatalf("%v, %d %s", err, answer.Status, answer.Body)
		}
		var n int
		if _, err := fmt.Sscan(answer.Header.Get("x-tokens-used"), &n); err != nil {
			t.Fatal(err)
		}
		billed += n
	}
	if requests, tokens := usedOf(t, server, servertest.Key); requests != calls || tokens != billed {
		t.Errorf("%d calls and %d tokens are shown, want %d and %d", requests, tokens, calls, billed)
	}
	if requests, _ := usedOf(t, server, other); requests != 0 {
		t.Errorf("another account is shown %d calls", requests)
	}
	server.Kill()
	server = start(t, data)
	if requests, tokens := usedOf(t, server, servertest.Key); requests != calls || tokens != billed {
		t.Errorf("after the kill %d calls and %d tokens are shown, want %d and %d", requests, tokens, calls, billed)
	}
	// A shutdown does not lose usage that no client has requested yet.
	if answer, err := gatewayOf(server, servertest.Key)(bounded(t), http.MethodPost, "/v1/chat/completions",
		helloChat); err != nil || answer.Status != 200 {
		t.Fatalf("%v, %d", err, answer.Status)
	}
	stop(t, server)
	if requests, _ := usedOf(t, start(t, data), servertest.Key); requests != calls+1 {
		t.Errorf("after the stop %d calls are shown, want %d", requests, calls+1)
	}
}

// A shutdown waits for open streams. Queued requests get an error.
func TestShutdownWaitsForStreams(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"first"}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-goOn
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"last"},"finish_reason":"stop"}]}`+
			"\n\ndata: [DONE]\n\n")
	}))
	defer upstream.Close()
	data := t.TempDir()
	row := strings.Replace(upstreamRow("slow", upstream.URL, ", concurrency: 1"), "routes:", "queue: {calls: 1, wait: 1m}, routes:", 1)
	server := start(t, data, "CUTROOM_METRICS_KEY=operator", "CUTROOM_CATALOG="+save(t, append(defaultCatalog(t), row...)))
	request, err := http.NewRequestWithContext(bounded(t), http.MethodPost, server.InferenceURL()+"/v1/chat/completions",
		strings.NewReader(`{"model":"slow","stream":true,"messages":[{"role":"user","content":"Hello!"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+servertest.Key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "first") {
		t.Fatalf("%q, %v", line, err)
	}
	waiting := make(chan string, 1)
	go func() {
		answer, err := gatewayOf(server, servertest.Key)(bounded(t), http.MethodPost, "/v1/chat/completions",
			`{"model":"slow","messages":[{"role":"user","content":"Hello!"}]}`)
		waiting <- fmt.Sprintf("%v %d %s", err, answer.Status, answer.Body)
	}()
	eventually(t, "the second call waits", func() bool {
		answer, err := (&servertest.Client{URL: server.InferenceURL()}).Get(bounded(t), "/metrics", "Authorization", "Bearer operator")
		return err == nil && strings.Contains(string(answer.Body), `cutroom_gateway_queue_waiting{model="slow"} 1`)
	})
	stopped := make(chan error, 1)
	go func() {
		code, err := server.Stop(bounded(t))
		if err == nil && code != 0 {
			err = fmt.Errorf("exit code %d", code)
		}
		stopped <- err
	}()
	eventually(t, "the server stops", func() bool { return strings.Contains(server.Log(), "stopping") })
	if got := await.Receive(t, "waiting", waiting); !strings.HasPrefix(got, "<nil> 503 ") ||
		!strings.Contains(got, "The gateway is shutting down") {
		t.Errorf("the call that waits: %s", got)
	}
	close(goOn)
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "last") || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the rest of the stream is %q, %v", rest, err)
	}
	if err := await.Receive(t, "stopped", stopped); err != nil {
		t.Error(err)
	}
	if requests, tokens := usedOf(t, start(t, data), servertest.Key); requests != 1 || tokens == 0 {
		t.Errorf("%d calls and %d tokens were metered", requests, tokens)
	}
}

// A key is generated if none is configured. Metrics always require a key, because even a request
// from this machine may come through a proxy.
func TestMetricsKeyIsGenerated(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := start(t, data)
	path := filepath.Join(data, "metrics-key")
	if !strings.Contains(server.Printed(), path) {
		t.Errorf("the welcome does not show the path of the key:\n%s", server.Printed())
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(string(content))
	client := &servertest.Client{URL: server.InferenceURL()}
	for header, status := range map[string]int{"Bearer " + key: 200, "Bearer " + servertest.Key: 404, "": 404} {
		if answer, err := client.Get(bounded(t), "/metrics", "Authorization", header); err != nil || answer.Status != status {
			t.Errorf("%q: %v, %d, want %d", header, err, answer.Status, status)
		}
	}
	stop(t, server)
	start(t, data)
	if again, err := os.ReadFile(path); err != nil || string(again) != string(content) {
		t.Errorf("the next start has another key: %v", err)
	}
}
