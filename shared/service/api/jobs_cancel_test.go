package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/testkit/await"
)

func (w *world) cancel(id, key string) answer {
	w.t.Helper()
	return w.request(http.MethodDelete, "/v1/jobs/"+id, key, nil)
}

func (w *world) wantCancelled(a answer) {
	w.t.Helper()
	var body struct {
		Status      string
		CompletedAt string `json:"completed_at"`
		Error       job.Failure
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != 200 ||
		body.Status != "failed" || body.Error != job.CancelledFailure() || body.CompletedAt == "" {
		w.t.Errorf("not cancelled: %d %s", a.status, a.body)
	}
}

func TestPendingJobCanBeCancelled(t *testing.T) {
	w := newWorld(t, setup{pending: 1})
	id := w.submit(studio)
	if a := w.post("gen-pro-t2v", studio, text("prompt", "x")); a.status != 429 {
		t.Fatalf("a second job: %d %s", a.status, a.body)
	}
	cancelled := w.cancel(id, studio)
	w.wantCancelled(cancelled)
	if again := w.cancel(id, studio); again.status != 200 || again.body != cancelled.body {
		t.Errorf("again: %d %s, want %s", again.status, again.body, cancelled.body)
	}
	if shown := w.get("/v1/jobs/"+id, studio); shown.body != cancelled.body {
		t.Errorf("GET shows %s, the cancellation %s", shown.body, cancelled.body)
	}
	if a := w.get("/v1/jobs/"+id+"/content", studio); a.status != 409 || a.header.Get("Retry-After") != "" ||
		!strings.Contains(a.detail(), "cancelled") {
		t.Errorf("the content: %d %s", a.status, a.body)
	}
	w.submit(studio) // the slot is free again
}

// The engine may finish before the cancellation. Its result is then deleted.
func TestCancellationBeforeResultIsRecordedWins(t *testing.T) {
	w := newWorld(t, setup{})
	answers := make(chan answer, 1)
	var late string
	w.work(script(func(_ context.Context, spec engine.Spec) error {
		if late == "" {
			late = spec.Job
			answers <- w.cancel(spec.Job, studio)
		}
		return os.WriteFile(spec.Output, []byte("the result"), 0o600)
	}), blind{})
	id, next := w.submit(studio), w.submit(studio)
	w.wantCancelled(await.Receive(t, "answers", answers))
	eventually(t, "the worker has run the next job", func() bool { return w.record(next).Status == job.Completed })
	eventually(t, "only the next job has a result", func() bool {
		files := w.files()
		return len(files) == 1 && strings.Contains(files[0], next)
	})
	w.wantCancelled(w.get("/v1/jobs/"+id, studio))
}

// Cancellation and completion race. A result is kept only if the job completed.
func TestCancellationOrCompletionWins(t *testing.T) {
	w := newWorld(t, setup{})
	done := make(chan chan struct{})
	w.work(script(func(_ context.Context, spec engine.Spec) error {
		err := os.WriteFile(spec.Output, []byte("the result"), 0o600)
		ready := make(chan struct{})
		done <- ready
		<-ready
		return err
	}), blind{})
	var completed int
	const rounds = 12
	for round := range rounds {
		id := w.submit(studio)
		ready := await.Receive(t, "done", done)
		close(ready)
		time.Sleep(time.Duration(round) * time.Millisecond) // varies which of the two is likely to win
		a := w.cancel(id, studio)
		switch shown := w.record(id); {
		case a.status == 200 && shown.Status == job.Failed:
			w.wantCancelled(a)
		case a.status == 409 && shown.Status == job.Completed && a.detail() == "The job has already completed.":
			completed++
			if content := w.get("/v1/jobs/"+id+"/content", studio); content.body != "the result" {
				t.Errorf("the content of the completed job: %d %s", content.status, content.body)
			}
		default:
			t.Errorf("the cancellation got %d %s, and the job is %s", a.status, a.body, shown.Status)
		}
	}
	eventually(t, fmt.Sprintf("%d results exist", completed), func() bool { return len(w.files()) == completed })
}

func TestEndedJobCannotBeCancelled(t *testing.T) {
	w := newWorld(t, setup{})
	completed, failed, overdue := w.submit(studio), w.submit(studio), w.submit(studio)
	w.start(completed)
	w.complete(completed, "bytes", "video/mp4")
	w.start(failed)
	w.fail(failed, job.Failure{Code: job.EngineError, Message: "It broke."})
	if a := w.cancel(completed, studio); a.status != 409 || a.detail() != "The job has already completed." {
		t.Errorf("completed: %d %s", a.status, a.body)
	}
	if a := w.cancel(failed, studio); a.status != 409 || a.detail() != "The job failed (engine_error): It broke." {
		t.Errorf("failed: %d %s", a.status, a.body)
	}
	w.later.Store(int64(job.MaxAge))
	if a := w.cancel(overdue, studio); a.status != 409 || !strings.Contains(a.detail(), "timeout") {
		t.Errorf("overdue: %d %s", a.status, a.body)
	}
	for _, id := range []string{completed, "job_unknown", "gen-9"} {
		if a := w.cancel(id, rival); a.status != 404 || a.detail() != "Job not found." {
			t.Errorf("%s by another account: %d %s", id, a.status, a.body)
		}
	}
}

// The next sweep would delete the inputs only much later.
func TestInputsOfCancelledJobAreDeletedAtOnce(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.accepted(w.post("gen-2.5", studio, upload("data", clip(t))))
	input := job.InputBlob(id, "data")
	if _, err := w.blobs.Head(t.Context(), input); err != nil {
		t.Fatal(err)
	}
	w.wantCancelled(w.cancel(id, studio))
	if _, err := w.blobs.Head(t.Context(), input); !fault.Is(err, fault.NotFound) {
		t.Errorf("the input still exists: %v", err)
	}
}
