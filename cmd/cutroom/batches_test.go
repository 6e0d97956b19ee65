package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

// batchUpstream is a model server that echoes and records requests.
type batchUpstream struct {
	*httptest.Server
	// release is a file path. Requests for the model "held" wait until the file exists.
	release string

	mu       sync.Mutex
	answered []string
}

func newBatchUpstream(t *testing.T) *batchUpstream {
	t.Helper()
	u := &batchUpstream{release: filepath.Join(t.TempDir(), "release")}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

func (u *batchUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model    string
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	text := asked.Messages[0].Content
	for asked.Model == "held" && text != "live" {
		if _, err := os.Stat(u.release); err == nil {
			break
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	time.Sleep(25 * time.Millisecond) // a real model takes time too
	u.mu.Lock()
	u.answered = append(u.answered, text)
	u.mu.Unlock()
	content, _ := json.Marshal(text)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,
		"finish_reason": "stop", "message": {"role": "assistant", "content": %s}}],
		"usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}}`, content)
}

func (u *batchUpstream) count() (answers, different int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	sorted := slices.Sorted(slices.Values(u.answered))
	return len(sorted), len(slices.Compact(sorted))
}

func (u *batchUpstream) settings(t *testing.T) []string {
	t.Helper()
	catalog := string(defaultCatalog(t))
	for _, name := range []string{"counted", "held"} {
		catalog += fmt.Sprintf("\n  - {id: %s, routes: [chat], context_length: 100000, max_output_length: 50, "+
			"price: {input: 1, output: 2, batch: 0.5}, upstreams: [{url: %q, model: %s, concurrency: 2}]}\n", name,
			u.URL+"/v1", name)
	}
	return []string{"CUTROOM_CATALOG=" + save(t, []byte(catalog))}
}

func batches(t *testing.T, server *servertest.Server, variables []string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(bounded(t), pythonProgram(t, "python"),
		append([]string{filepath.Join("testdata", "openai", "batches.py")}, args...)...)
	command.Env = append(append(os.Environ(), variables...), "GATEWAY_URL="+server.InferenceURL(),
		"PERMANENT_KEY="+servertest.Key, "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*")
	var stdout, stderr programtest.Output
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%v after %q\n%s", err, stdout.String(), stderr.String())
	}
	return strings.Join(strings.Fields(stdout.String()), " ")
}

func TestBatchSurvivesKills(t *testing.T) {
	t.Parallel()
	const lines, rounds = 240, 3
	upstream, data := newBatchUpstream(t), t.TempDir()
	settings := upstream.settings(t)
	server := start(t, data, settings...)
	id := batches(t, server, nil, "begin", fmt.Sprint(lines))
	for round := range rounds {
		eventually(t, "calls", func() bool {
			_, different := upstream.count()
			return different > (round+1)*lines/(rounds+2)
		})
		server.Kill()
		server = start(t, data, settings...)
	}
	if got := batches(t, server, nil, "finish", id, fmt.Sprint(lines)); got != "finished" {
		t.Errorf("it printed %q", got)
	}
	answers, different := upstream.count()
	if different != lines {
		t.Errorf("the model server got %d distinct requests, want %d", different, lines)
	}
	if requests, tokens := usedOf(t, server, servertest.Key); requests != lines || tokens != 20*lines {
		t.Errorf("%d calls and %d tokens were billed, want %d and %d", requests, tokens, lines, 20*lines)
	}
	t.Logf("%d calls, %d answers of the model server", lines, answers)
	eventually(t, "the batch's own files are gone", func() bool {
		left, err := filepath.Glob(filepath.Join(data, "blobs", "batches", "*"))
		return err == nil && len(left) == 0
	})
	stop(t, server)
}

func TestPythonClientRunsBatches(t *testing.T) {
	t.Parallel()
	upstream, data := newBatchUpstream(t), t.TempDir()
	settings := upstream.settings(t)
	server := start(t, data, settings...)
	other := newKey(t, data, nil, "--account", "other")
	const checks = "files rejections flaws failures cancelling"
	if got := batches(t, server, []string{"OTHER_KEY=" + other, "RELEASE=" + upstream.release}, "check"); got != checks {
		t.Errorf("the checks were %q, want %q", got, checks)
	}
}
