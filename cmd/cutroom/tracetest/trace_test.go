package tracetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"cutroom/shared/engine/engineserver"
	"cutroom/shared/platform/trace/tracetest"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	caller  = "00f067aa0ba902b7"
	// secretPrompt must not appear anywhere except at the model.
	secretPrompt = "an-unmistakable-prompt"
)

var program string

func TestMain(m *testing.M) {
	os.Exit(programtest.Main(m, "cutroom/cmd/cutroom", &program))
}

func start(t *testing.T, settings ...string) (context.Context, *servertest.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Max)
	t.Cleanup(cancel)
	server, err := servertest.Program(program).Start(ctx, t.TempDir(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return ctx, server
}

func send(ctx context.Context, t *testing.T, method, url string, body io.Reader,
	header ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", servertest.Key)
	request.Header.Set("Authorization", "Bearer "+servertest.Key)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

func picture(t *testing.T) []byte {
	t.Helper()
	picture, err := os.ReadFile("../../../testdata/garment.png")
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// engineServer returns the URL of an engine server that writes a picture. asked receives the traceparent of each run.
func engineServer(t *testing.T) (url string, asked <-chan string) {
	t.Helper()
	picture := picture(t)
	parents := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var run engineserver.Request
		if r.URL.Path != "/v1/runs" || json.NewDecoder(r.Body).Decode(&run) != nil {
			return // a health check or a request for estimates
		}
		parents <- r.Header.Get("Traceparent")
		if err := os.WriteFile(run.Output, picture, 0o600); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "{\"progress\":0.5}\n{\"result\":{\"bytes\":%d}}\n", len(picture))
	}))
	t.Cleanup(server.Close)
	return server.URL, parents
}

func TestTraceLeadsFromRequestToEngine(t *testing.T) {
	t.Parallel()
	collector := tracetest.Start(t)
	engine, asked := engineServer(t)
	ctx, server := start(t, append(collector.Settings(), "CUTROOM_ENGINE="+engine)...)
	form, _, contentType := servertest.Form{
		servertest.File("data", "private-name.png", picture(t)), servertest.Text("prompt", secretPrompt),
	}.Encode()
	answer, body := send(ctx, t, "POST", server.URL()+"/v1/jobs/gen-image-2", form, "Content-Type", contentType,
		"Traceparent", "00-"+traceID+"-"+caller+"-01", "X-Request-Id", "request-1")
	if answer.StatusCode != 200 || answer.Header.Get("X-Request-Id") != "request-1" {
		t.Fatalf("%d %v %s", answer.StatusCode, answer.Header, body)
	}
	names := []string{"POST /v1/jobs/{id}", "job.queue", "job.run", "fetch", "probe", "engine", "store"}
	spans := map[string]tracetest.Span{}
	for _, span := range collector.Trace(ctx, t, traceID, names...) {
		spans[span.Name] = span
	}
	for name, parent := range map[string]string{
		"POST /v1/jobs/{id}": caller,
		"job.queue":          spans["POST /v1/jobs/{id}"].SpanID, "job.run": spans["POST /v1/jobs/{id}"].SpanID,
		"fetch": spans["job.run"].SpanID, "probe": spans["job.run"].SpanID, "engine": spans["job.run"].SpanID,
		"store": spans["job.run"].SpanID,
	} {
		if span := spans[name]; span.Parent != parent || span.End.Before(span.Start) || span.Failed ||
			span.Service != "cutroom" {
			t.Errorf("%s: %+v, want the parent %s", name, span, parent)
		}
	}
	if at := spans["job.run"].Attributes; at["cutroom.model"] != "gen-image-2" || at["cutroom.outcome"] != "completed" ||
		!strings.HasPrefix(at["cutroom.job"], "job_") {
		t.Errorf("the run is described by %v", at)
	}
	if at := spans["POST /v1/jobs/{id}"].Attributes; at["http.response.status_code"] != "200" ||
		at["cutroom.request_id"] != "request-1" || at["cutroom.account"] != "dev" {
		t.Errorf("the request is described by %v", at)
	}
	if got, want := await.Receive(t, "asked", asked), "00-"+traceID+"-"+spans["engine"].SpanID+"-01"; got != want {
		t.Errorf("the engine server continues with %q, want %q", got, want)
	}
	if n := strings.Count(server.Log(), "trace_id="+traceID); n < 3 {
		t.Errorf("%d lines of the log have the trace's id:\n%s", n, server.Log())
	}
	for _, private := range []string{secretPrompt, "private-name", servertest.Key, "PNG\r\n"} {
		if bytes.Contains(collector.Received(), []byte(private)) {
			t.Errorf("the traces hold %q", private)
		}
	}
}

// The call continues the caller's trace.
func TestStreamIsOneSpan(t *testing.T) {
	t.Parallel()
	collector := tracetest.Start(t)
	ctx, server := start(t, collector.Settings()...)
	_, models := send(ctx, t, "GET", server.InferenceURL()+"/v1/models", nil)
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal([]byte(models), &list); err != nil || len(list.Data) == 0 {
		t.Fatalf("%s: %v", models, err)
	}
	answer, text := send(ctx, t, "POST", server.InferenceURL()+"/v1/chat/completions",
		strings.NewReader(fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":%q}]}`, list.Data[0].ID,
			secretPrompt)),
		"Traceparent", "00-"+traceID+"-"+caller+"-01")
	if answer.StatusCode != 200 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Fatalf("%d %s", answer.StatusCode, text)
	}
	var calls []tracetest.Span
	var request tracetest.Span
	for _, span := range collector.Trace(ctx, t, traceID, "POST /v1/chat/completions", "upstream") {
		if span.Name == "upstream" {
			calls = append(calls, span)
		} else {
			request = span
		}
	}
	if len(calls) != 1 || calls[0].Parent != request.SpanID || request.Parent != caller {
		t.Fatalf("%+v below %+v", calls, request)
	}
	call := calls[0]
	if len(call.Events) != 1 || call.Events[0] != "first_token" || call.Attributes["gen_ai.operation.name"] != "chat" ||
		call.Attributes["gen_ai.request.model"] != list.Data[0].ID || call.Attributes["gen_ai.usage.output_tokens"] == "" ||
		call.Attributes["cutroom.outcome"] != "succeeded" {
		t.Errorf("%+v", call)
	}
	if received := collector.Received(); bytes.Contains(received, []byte(secretPrompt)) ||
		bytes.Contains(received, []byte(servertest.Key)) {
		t.Error("the traces hold the prompt or the key")
	}
}

// The server also stops without delay.
func TestHangingCollectorDelaysNothing(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections but does not respond
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, server := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+listener.Addr().String())
	for range 50 {
		if answer, text := send(ctx, t, "GET", server.URL()+"/v1/files", nil); answer.StatusCode != 200 {
			t.Fatalf("%d %s", answer.StatusCode, text)
		}
	}
	if code, err := server.Stop(ctx); code != 0 || err != nil {
		t.Errorf("the server exited with %d, %v", code, err)
	}
}

// The server prints a single line.
func TestInvalidEndpointPreventsStart(t *testing.T) {
	t.Parallel()
	server, err := servertest.Program(program).Start(t.Context(), t.TempDir(),
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318")
	if err == nil {
		server.Kill()
		t.Fatal("the server started")
	}
	if !strings.Contains(err.Error(),
		"cutroom: OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL, such as http://127.0.0.1:4318") {
		t.Error(err)
	}
}
