package command_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"cutroom/cmd/cutroom/command"
)

func run(t *testing.T, url string, arguments ...string) (seen string, err error) {
	t.Helper()
	return runWith(t, nil, url, arguments...)
}

func runWith(t *testing.T, settings map[string]string, url string, arguments ...string) (seen string, err error) {
	t.Helper()
	var line struct {
		command.Commands
		command.Flags
	}
	parsed, err := kong.Must(&line).Parse(arguments)
	if err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	environment := map[string]string{"CUTROOM_URL": url, "CUTROOM_INFERENCE_URL": url, "CUTROOM_API_KEY": "ck_development"}
	maps.Copy(environment, settings)
	session := &command.Invocation{
		Flags: line.Flags, In: strings.NewReader(""), Out: &shown, Err: &shown, Version: "test",
		Getenv: func(name string) string { return environment[name] },
	}
	parsed.BindTo(t.Context(), (*context.Context)(nil))
	if err = parsed.Run(session); err != nil {
		session.Report(err)
	}
	return shown.String(), err
}

func serve(t *testing.T, answers map[string]string) string {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, body := range answers {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			status, body, failed := http.StatusOK, body, false
			if body, failed = strings.CutPrefix(body, "500 "); failed {
				status = http.StatusInternalServerError
			}
			w.Header().Set("X-Request-Id", "req\u009b2J")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// A model name from a server becomes part of the result's name, and must not lead to another folder.
func TestServerCannotChooseResultPath(t *testing.T) {
	folder := t.TempDir()
	results := filepath.Join(folder, "inner", "results")
	if err := os.MkdirAll(results, 0o777); err != nil {
		t.Fatal(err)
	}
	clip := filepath.Join(results, "clip.mp4")
	if err := os.WriteFile(clip, []byte("bytes"), 0o666); err != nil {
		t.Fatal(err)
	}
	const job = `{"job_id":"job_1","status":"completed","model":"gen-2.5"}`
	naming := func(model string) string {
		return serve(t, map[string]string{
			"POST /v1/models/resolve": `{"model_id":"` + model + `"}`, "POST /v1/jobs/{model...}": job, "GET /v1/jobs/{id}": job,
			"GET /v1/jobs/{id}/content": "what the server wants there",
		})
	}
	for _, model := range []string{"../../escaped", "/../../escaped", "x/../../../escaped", "gen-2.5\x1b[2J",
		`..\\..\\escaped`, ""} {
		escaped := strings.ReplaceAll(model, "\x1b", `\u001b`)
		if seen, err := run(t, naming(escaped), "edit", clip, "-p", "x"); err == nil {
			t.Errorf("the model %q was accepted: %q", model, seen)
		}
		if seen, err := run(t, naming(escaped), "t2v", "x", "-o", results); err == nil {
			t.Errorf("the model %q was accepted for text: %q", model, seen)
		}
	}
	if seen, err := run(t, naming("gen-2.5"), "t2v", "x", "-o", results); err != nil ||
		seen[strings.LastIndexByte(seen, '/')+1:] != "x.mp4\n" {
		t.Errorf("%q, %v", seen, err)
	}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Dir(path) != results {
			t.Errorf("%s was written", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestServerCannotControlTerminal(t *testing.T) {
	const evil = `\u001b]0;owned\u0007\u009b2J\r\u202e\u2066\u2028`
	job := `{"job_id":"job_1` + evil + `","status":"completed` + evil + `","model":"gen-2.5` + evil +
		`","error":{"code":"x` + evil + `","message":"x` + evil + `"}}`
	url := serve(t, map[string]string{
		"POST /v1/models/resolve": `{"model_id":"gen-2.5"}`, "POST /v1/jobs/{model}": job, "GET /v1/jobs/{id}": job,
		"DELETE /v1/jobs/{id}": job,
		"GET /v1/jobs":         `{"jobs":[` + job + `],"next_cursor":null}`,
		"POST /v1/files":       `{"id":"file_` + evil + `"}`,
		"GET /v1/files": `{"files":[{"id":"file_` + evil + `","filename":"` + evil + `","mime_type":"` + evil +
			`"}],"next_cursor":null}`,
		"GET /v1/files/{id}":      `{"id":"file_` + evil + `","filename":"` + evil + `","mime_type":"` + evil + `"}`,
		"POST /v1/client/tokens":  `{"apiKey":"ek_` + evil + `","expiresAt":"2026-01-01T00:00:00Z"}`,
		"GET /v1/webhooks/secret": `{"secret":"` + evil + `"}`,
		"GET /v1/usage":           `500 {"error":{"message":"x` + evil + `"}}`,
	})
	clip := filepath.Join(t.TempDir(), "clip.mp4")
	if err := os.WriteFile(clip, []byte("bytes"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{
		{"edit", clip, "-p", "x", "--detach"}, {"jobs"}, {"jobs", "get", "job_1"}, {"jobs", "cancel", "job_1"}, {"files"},
		{"files", "put", clip},
		{"files", "get", "file_1"}, {"token"}, {"webhook-secret"}, {"usage"},
	} {
		for _, arguments := range [][]string{arguments, append(arguments, "--json")} {
			seen, _ := run(t, url, arguments...)
			if seen == "" || strings.ContainsAny(seen, "\x1b\a\r\u009b\u202e\u2066\u2028") {
				t.Errorf("%v shows %q", arguments, seen)
			}
		}
	}
}
