package main_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

func browser(ctx context.Context, t *testing.T, address string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := programtest.Browser()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, path, append([]string{
		// The test's own pages need no sandbox, which might fail in a container.
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir=" + t.TempDir(),
	}, append(args, address)...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	return command
}

type pageReport struct {
	Failure string
	Steps   []struct {
		Name   string
		Status int
		Header map[string]string
		Body   map[string]any
	}
	Size  int
	Type  string
	Video struct {
		Width, Height int
		Duration      float64
	}
}

//go:embed testdata/page.html
var page []byte

// A page from another origin gets a client token from its own backend. It can read every error.
func TestPageFromAnotherOriginCanEdit(t *testing.T) {
	t.Parallel()
	// The engine waits until the page has requested a result that is not ready yet.
	released := make(chan struct{})
	engine := httptest.NewServer(engineservertest.Handler(held{newPreview(t), released}))
	t.Cleanup(engine.Close) // close the engine after the program and its runs have ended
	server := start(t, t.TempDir(), "CUTROOM_CATALOG="+smallCatalog(t), "CUTROOM_ENGINE="+engine.URL)
	reports := make(chan pageReport, 1)
	application := httptest.NewServer(backend(server, sync.OnceFunc(func() { close(released) }), reports))
	defer application.Close()

	ctx, stop := context.WithCancel(bounded(t))
	defer stop()
	command := browser(ctx, t, application.URL)
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		_ = command.Wait() // the error only says that the program was killed
	}()
	var report pageReport
	select {
	case report = <-reports:
	case <-ctx.Done():
		t.Fatalf("the page reports nothing: %v\n%s", context.Cause(ctx), &log)
	}

	if report.Failure != "" {
		t.Errorf("on the page: %s", report.Failure)
	}
	want := []struct {
		name   string
		status int
		// field is a field of the response body. value is its expected value, as printed. header is a response header
		// that the page must be able to read.
		field, value, header string
	}{
		{"no key", 401, "detail", "An API key is required in the header x-api-key.", "x-request-id"},
		{"a token of another origin", 403, "", "", "x-request-id"},
		{"mint", 403, "", "", "x-request-id"},
		{"another model", 403, "", "", "x-request-id"},
		{"upload", 200, "mime_type", "video/mp4", "x-request-id"},
		{"submit", 200, "status", "pending", "x-request-id"},
		{"too early", 409, "", "", "retry-after"},
		{"poll", 200, "status", "completed", "x-request-id"},
		{"download", 200, "", "", "etag"},
	}
	if len(report.Steps) != len(want) {
		t.Fatalf("the page has seen %d responses, want %d: %+v", len(report.Steps), len(want), report.Steps)
	}
	for i, want := range want {
		got := report.Steps[i]
		if got.Name != want.name || got.Status != want.status || got.Header[want.header] == "" {
			t.Errorf("%s: status %d, %s %q, want %d and a readable header", got.Name, got.Status, want.header,
				got.Header[want.header], want.status)
		}
		if want.field != "" && fmt.Sprint(got.Body[want.field]) != want.value {
			t.Errorf("%s: %s is %v, want %q", got.Name, want.field, got.Body[want.field], want.value)
		}
	}
	if report.Type != "video/mp4" || report.Size == 0 || report.Video.Width != 64 || report.Video.Height != 36 ||
		report.Video.Duration < 0.1 {
		t.Errorf("the page received %d bytes of %s, which play as %+v", report.Size, report.Type, report.Video)
	}
}

type held struct {
	engine.Engine
	released <-chan struct{}
}

func (e held) Run(
	ctx context.Context, spec engine.Spec, progress func(engine.Progress),
) (engine.Outcome, error) {
	select {
	case <-e.released:
		return e.Engine.Run(ctx, spec, progress)
	case <-ctx.Done():
		return engine.Outcome{}, ctx.Err()
	}
}

// backend is an application's own backend. It serves the page and creates the tokens. When the page
// reports that edits may start, it calls release.
func backend(server *servertest.Server, release func(), reports chan<- pageReport) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(page)
	})
	mux.HandleFunc("GET /clip.mp4", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "video/mp4")
		w.Write(fixtures.tiny)
	})
	mux.HandleFunc("POST /session", func(w http.ResponseWriter, r *http.Request) {
		tokens := map[string]string{"api": server.URL()}
		for name, origin := range map[string]string{"token": r.Header.Get("Origin"),
			"elsewhere": "https://elsewhere.example"} {
			body := fmt.Sprintf(`{"expiresIn": 600, "allowedModels": ["gen-2.5"], "allowedOrigins": [%q]}`, origin)
			answer, err := server.Client().Call(r.Context(), http.MethodPost, "/v1/client/tokens", strings.NewReader(body),
				int64(len(body)), "Content-Type", "application/json")
			var token struct{ APIKey string }
			if err != nil || json.Unmarshal(answer.Body, &token) != nil || answer.Status != http.StatusOK {
				http.Error(w, fmt.Sprintf("%v: %s", err, answer.Body), http.StatusBadGateway)
				return
			}
			tokens[name] = token.APIKey
		}
		json.NewEncoder(w).Encode(tokens)
	})
	mux.HandleFunc("POST /release", func(http.ResponseWriter, *http.Request) { release() })
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		var report pageReport
		if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
			report.Failure = err.Error()
		}
		reports <- report
	})
	return mux
}

// The page's policy allows it to load only the document.
func TestDocsPageShowsEveryOperation(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir(), "CUTROOM_FAMILY=acme")
	answer, err := server.Client().Get(bounded(t), "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		// In the document, a gateway path has servers next to its operations.
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(answer.Body, &document); err != nil {
		t.Fatal(err)
	}
	shown, err := browser(bounded(t), t, server.URL()+"/docs", "--virtual-time-budget=10000", "--dump-dom").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, drawn, _ := bytes.Cut(shown, []byte("<main"))
	drawn, _, _ = bytes.Cut(drawn, []byte("</main>"))
	for path, methods := range document.Paths {
		for method, text := range methods {
			var operation struct {
				OperationID string
				AliasOf     string `json:"x-alias-of"`
			}
			if method == "servers" {
				continue
			}
			if err := json.Unmarshal(text, &operation); err != nil {
				t.Fatal(err)
			}
			// A model's aliases are options in its section.
			section := fmt.Sprintf("id=%q", operation.OperationID)
			if operation.AliasOf != "" {
				section = fmt.Sprintf("value=%q", path)
			}
			if !bytes.Contains(drawn, []byte(section)) {
				t.Errorf("%s is not on the page", path)
			}
		}
	}
	if !bytes.Contains(drawn, []byte("curl "+server.URL()+"/v1/jobs/acme-2.5 ")) {
		t.Error("the command to copy for acme-2.5 is missing")
	}
	if !bytes.Contains(drawn, []byte("curl -f "+server.URL()+"/v1/jobs/JOB_ID/content")) {
		t.Error("the command that saves a result would also save an error response")
	}
	if !bytes.Contains(drawn, []byte("curl "+server.InferenceURL()+"/v1/chat/completions ")) {
		t.Error("the command to copy for the gateway at its own address is missing")
	}
	if bytes.Contains(drawn, []byte("webhook_url=")) {
		t.Error("a command to copy calls a foreign webhook")
	}
	for _, slip := range []string{"undefined", "[object"} {
		if bytes.Contains(drawn, []byte(slip)) {
			t.Errorf("%q is on the page", slip)
		}
	}

	page, err := server.Client().Get(bounded(t), "/docs")
	if err != nil {
		t.Fatal(err)
	}
	if policy := page.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; ") ||
		strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	if len(page.Body) > 60_000 {
		t.Errorf("the page has %d bytes, want at most 60,000", len(page.Body))
	}
}
