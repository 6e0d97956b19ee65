package client_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/client"
)

var result = []byte(strings.Repeat("0123456789", 20_000))

func whole(w http.ResponseWriter, r *http.Request) {
	http.ServeContent(w, r, "result.mp4", time.Time{}, bytes.NewReader(result))
}

func cut(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", fmt.Sprint(len(result)))
	_, _ = w.Write(result[:70_000])
	panic(http.ErrAbortHandler)
}

func TestDownloadResumes(t *testing.T) {
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		kept    []byte
		ranges  []string
	}{
		"without interruption":      {[]http.HandlerFunc{whole}, nil, []string{""}},
		"after a broken connection": {[]http.HandlerFunc{cut, whole}, nil, []string{"", "bytes=70000-"}},
		"after an earlier attempt":  {[]http.HandlerFunc{whole}, result[:100], []string{"bytes=100-"}},
		"already complete": {[]http.HandlerFunc{whole, whole}, result,
			[]string{fmt.Sprintf("bytes=%d-", len(result)), ""}},
		"without ranges": {[]http.HandlerFunc{cut,
			status(200, string(result), "Content-Length", fmt.Sprint(len(result)))}, nil, []string{"", "bytes=70000-"}},
	} {
		t.Run(name, func(t *testing.T) {
			c2, s := serve(t, c.answers...)
			path := filepath.Join(t.TempDir(), "out.mp4")
			if c.kept != nil {
				if err := os.WriteFile(client.Partial(path, "job_1"), c.kept, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var last, all int64
			if err := c2.Download(bounded(t), "job_1", path, func(done, total int64) { last, all = done, total }); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, result) {
				t.Errorf("received %d bytes of %d, %v", len(got), len(result), err)
			}
			if last != all || all != int64(len(result)) {
				t.Errorf("reported %d of %d", last, all)
			}
			var ranges []string
			for _, request := range s.all() {
				ranges = append(ranges, request.header.Get("Range"))
			}
			if !slices.Equal(ranges, c.ranges) {
				t.Errorf("the ranges were %q, want %q", ranges, c.ranges)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.part")); left != nil {
				t.Errorf("files remain: %v", left)
			}
		})
	}
}

// The file's name contains the server's job id, which must not lead to another folder.
func TestIncompleteDownloadsAreKeptNextToResults(t *testing.T) {
	for id, want := range map[string]string{
		"job_1": "results/a.mp4.job_1.part", "/../../b": "results/a.mp4.%2F..%2F..%2Fb.part",
		`\..\b`: "results/a.mp4.%5C..%5Cb.part",
	} {
		if got := client.Partial("results/a.mp4", id); got != want {
			t.Errorf("the incomplete file of %q is in %q, want %q", id, got, want)
		}
	}
}

// Only an interrupted download leaves a file, so that it can be resumed.
func TestRejectedDownloadLeavesNoFile(t *testing.T) {
	c, _ := serve(t, cut, hangUp)
	path := filepath.Join(t.TempDir(), "out.mp4")
	if err := c.Download(bounded(t), "job_1", path, nil); err == nil {
		t.Fatal("a permanently broken download succeeded")
	}
	if kept, err := os.ReadFile(client.Partial(path, "job_1")); err != nil || !bytes.Equal(kept, result[:70_000]) {
		t.Errorf("%d bytes are kept, %v", len(kept), err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("the incomplete file is at the result's path")
	}
	c, _ = serve(t, status(404, `{"detail":"gone"}`))
	if err := c.Download(bounded(t), "job_1", path, nil); !client.IsStatus(err, 404) {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(path + "*"); left != nil {
		t.Errorf("files remain: %v", left)
	}
}

func TestKeyIsSentOnlyToTheService(t *testing.T) {
	store := &service{t: t, answers: []http.HandlerFunc{whole}}
	elsewhere := httptest.NewServer(store)
	defer elsewhere.Close()
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		// A different name for the same machine is treated as a different host.
		http.Redirect(w, r, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)+"/signed", http.StatusFound)
	})
	var got bytes.Buffer
	if err := c.CopyContent(bounded(t), "job_1", &got, nil); err != nil || !bytes.Equal(got.Bytes(), result) {
		t.Fatalf("%d bytes, %v", got.Len(), err)
	}
	for name := range store.all()[0].header {
		if value := store.all()[0].header.Get(name); strings.Contains(value, "ck_test_key") {
			t.Errorf("the other host received %s: %s", name, value)
		}
	}
}

func appendState(states *[]string) func(client.Job) {
	return func(job client.Job) { *states = append(*states, fmt.Sprintf("%s %.1f", job.Status, job.Progress)) }
}

func event(status string, progress float64) string {
	return fmt.Sprintf("event: job\nid: 1\ndata: {\"job_id\":\"job_1\",\"status\":%q,\"progress\":%.1f}\n\n", status,
		progress)
}

func events(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "retry: 2000\n\n: still here\n\n"+text)
	}
}

// If the event stream breaks, AwaitJob reconnects. If the service has no events, it polls.
func TestAwaitJobFollowsOrPolls(t *testing.T) {
	done := `{"job_id":"job_1","status":"completed","progress":1}`
	for name, c := range map[string]struct {
		answers         []http.HandlerFunc
		states, methods []string
	}{
		"with events": {
			[]http.HandlerFunc{events(event("pending", 0) + event("processing", 0.5) + event("completed", 1))},
			[]string{"pending 0.0", "processing 0.5", "completed 1.0"}, []string{"GET /v1/jobs/job_1/events"},
		},
		"after a broken connection": {
			[]http.HandlerFunc{events(event("processing", 0.5)), events(event("failed", 0.5))},
			[]string{"processing 0.5", "failed 0.5"}, []string{"GET /v1/jobs/job_1/events", "GET /v1/jobs/job_1/events"},
		},
		"without events": {
			[]http.HandlerFunc{status(404, ""), status(200, `{"job_id":"job_1","status":"processing","progress":0.2}`), hangUp,
				status(200, done)},
			[]string{"processing 0.2", "completed 1.0"},
			[]string{"GET /v1/jobs/job_1/events", "GET /v1/jobs/job_1", "GET /v1/jobs/job_1", "GET /v1/jobs/job_1"},
		},
		"with another content type": {
			[]http.HandlerFunc{status(200, "<html>", "Content-Type", "text/html"), status(200, done)},
			[]string{"completed 1.0"}, []string{"GET /v1/jobs/job_1/events", "GET /v1/jobs/job_1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c2, s := serve(t, c.answers...)
			var states []string
			job, err := c2.AwaitJob(bounded(t), "job_1", appendState(&states))
			if err != nil || !job.Ended() {
				t.Fatalf("%+v, %v", job, err)
			}
			if !slices.Equal(states, c.states) || !slices.Equal(s.requests(), c.methods) {
				t.Errorf("saw %q with %q, want %q with %q", states, s.requests(), c.states, c.methods)
			}
		})
	}
	c, _ := serve(t, status(404, `{"detail":"Job not found."}`))
	if _, err := c.AwaitJob(bounded(t), "job_2", appendState(new([]string))); !client.IsStatus(err, 404) {
		t.Errorf("an unknown job: %v", err)
	}
}
