package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/platform/clock"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

// stepped is a server on a machine whose clock is set by the test.
type stepped struct {
	*testing.T
	server *server
	// wall and elapsed are offsets added to the machine's clocks.
	wall, elapsed atomic.Int64
	log           programtest.Output
}

func newStepped(t *testing.T) *stepped {
	t.Helper()
	w := &stepped{T: t}
	machine, err := clocksOfMachine()
	if err != nil {
		t.Fatal(err)
	}
	elapsed := machine.elapsed
	machine.wall = func() time.Time { return time.Now().Add(time.Duration(w.wall.Load() + w.elapsed.Load())) }
	machine.elapsed = func() time.Duration { return elapsed() + time.Duration(w.elapsed.Load()) }
	ctx, cancel := context.WithCancel(t.Context())
	w.server = newIdle(ctx, t, machine, &w.log)
	ended := make(chan error, 1)
	go func() { ended <- w.server.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := await.Receive(t, "ended", ended); err != nil {
			t.Error(err)
		}
		w.server.close()
	})
	w.eventually("the server is ready", func() bool {
		status,
			_ := w.call("GET", "/healthz", nil, "")
		return status == 200
	})
	return w
}

func newIdle(ctx context.Context, t *testing.T, machine machineClocks, log io.Writer) *server {
	t.Helper()
	var line commandLine
	parser, err := newParser(&line)
	if err != nil {
		t.Fatal(err)
	}
	models, err := os.ReadFile(filepath.Join("..", "..", "shared", "domain", "catalog", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(t.TempDir(), "catalog.yaml")
	if err := os.WriteFile(small, servertest.SmallResults(models), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"dev", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--inference-addr",
		"127.0.0.1:0", "--catalog", small,
		"--dev-key", "ck_clock_test_key_0123456789", "--workers", "1"}); err != nil {
		t.Fatal(err)
	}
	s, err := newServer(ctx, &line.Dev, machine, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *stepped) call(method, path string, body io.Reader, contentType string) (int, []byte) {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), method, w.server.url()+path, body)
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("x-api-key", w.server.devKey)
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return response.StatusCode, content
}

func (w *stepped) post(path, field string) map[string]any {
	w.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile(field, "a.png")
	if err == nil {
		err = png.Encode(part, image.NewGray(image.Rect(0, 0, 64, 64)))
	}
	if err == nil && field == "data" {
		err = form.WriteField("prompt", "film noir")
	}
	if err != nil || form.Close() != nil {
		w.Fatal(err)
	}
	status, answer := w.call("POST", path, &body, form.FormDataContentType())
	var record map[string]any
	if status != 200 || json.Unmarshal(answer, &record) != nil {
		w.Fatalf("%s: %d %s", path, status, answer)
	}
	return record
}

func (w *stepped) eventually(what string, holds func() bool) {
	w.Helper()
	await.Until(w, what, holds, func() any { return w.log.String() })
}

func (w *stepped) completes(id any) {
	w.Helper()
	w.eventually("the job completes", func() bool {
		_, answer := w.call("GET", fmt.Sprint("/v1/jobs/", id), nil, "")
		var job struct{ Status string }
		if err := json.Unmarshal(answer, &job); err != nil || job.Status == "failed" {
			w.Fatalf("%s, %v", answer, err)
		}
		return job.Status == "completed"
	})
}

func (w *stepped) sweep() {
	w.Helper()
	if err := w.server.files.Sweep(w.Context()); err != nil {
		w.Error(err)
	}
	if err := w.server.sweeper.Sweep(w.Context()); err != nil {
		w.Error(err)
	}
	if err := w.server.sweeper.Expire(w.Context()); err != nil {
		w.Error(err)
	}
}

// Jobs continue, nothing is deleted, and no wrong time is written.
func TestClockChangesLoseNothing(t *testing.T) {
	t.Parallel()
	w := newStepped(t)
	kept := w.post("/v1/files", "file")
	done := w.post("/v1/jobs/gen-image-2", "data")
	w.completes(done["job_id"])
	for name, by := range map[string]time.Duration{
		"back": -90 * time.Second, "forward": 5 * 24 * time.Hour, "to 2066": 40 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			w.T = t
			// Submit one job before the clock steps and one after.
			before := w.post("/v1/jobs/gen-image-2", "data")
			w.wall.Store(int64(by))
			w.completes(before["job_id"])
			w.completes(w.post("/v1/jobs/gen-image-2", "data")["job_id"])
			w.eventually("the step is logged", func() bool { return strings.Contains(w.log.String(), "was set") })
			begun := time.Now().Add(-time.Minute)
			made := w.post("/v1/files", "file")
			created, err := time.Parse(time.RFC3339, fmt.Sprint(made["created_at"]))
			if err != nil || created.Before(begun) || created.After(time.Now().Add(time.Minute)) {
				t.Errorf("a file made during the step has the time %v, %v", made["created_at"], err)
			}
			w.sweep()
			for _, path := range []string{
				fmt.Sprint("/v1/files/", kept["id"]), fmt.Sprint("/v1/files/", made["id"]),
				fmt.Sprintf("/v1/jobs/%v/content", done["job_id"]),
			} {
				if status, answer := w.call("GET", path, nil, ""); status != 200 {
					t.Errorf("%s: %d %.200s", path, status, answer)
				}
			}
			w.wall.Store(0)
		})
	}
}

// After the step is adopted, waiting jobs still have the same time left until their deadlines.
func TestPersistentClockStepIsAdopted(t *testing.T) {
	t.Parallel()
	w := newStepped(t)
	w.wall.Store(int64(5 * time.Hour))
	w.eventually("the step is logged", func() bool { return strings.Contains(w.log.String(), "was set forward") })
	w.elapsed.Store(int64(clock.Hold + time.Second))
	w.eventually("the step is followed", func() bool { return strings.Contains(w.log.String(), "follows the machine's") })
	if ahead := time.Until(w.server.clock.Now()); ahead < 5*time.Hour {
		t.Errorf("the server's clock is ahead by %v", ahead)
	}
	w.completes(w.post("/v1/jobs/gen-image-2", "data")["job_id"])
}
