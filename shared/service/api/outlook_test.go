package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

type outlook struct {
	Status     string
	Position   int                                   `json:"queue_position"`
	Start      *struct{ Earliest, Latest time.Time } `json:"estimated_start_at"`
	Completion *struct{ Earliest, Latest time.Time } `json:"estimated_completion_at"`
}

func (w *world) outlook(id, key string) outlook {
	w.t.Helper()
	w.pass(3 * time.Second) // by then, the service reads the queue again
	var shown outlook
	if err := json.Unmarshal([]byte(w.get("/v1/jobs/"+id, key).body), &shown); err != nil {
		w.t.Fatal(err)
	}
	return shown
}

// The expected end is shown once a job of the model has run (docs/contract/jobs.md#outlook).
func TestPendingJobShowsItsOutlook(t *testing.T) {
	w := newWorld(t, setup{workers: 1})
	w.stopClock()
	submit := func(key string) string {
		defer w.pass(time.Second) // the creation time decides the place in the queue
		return w.submit(key)
	}
	first, second, third, other := submit(studio), submit(studio), submit(studio), submit(rival)
	for id, want := range map[string]int{first: 2, second: 3, third: 4} {
		if shown := w.outlook(id, studio); shown.Position != want || shown.Start != nil || shown.Completion != nil {
			t.Errorf("before any completed job: %+v, want only the place %d", shown, want)
		}
	}
	if shown := w.outlook(other, rival); shown.Position != 2 {
		t.Errorf("the other account's: %+v", shown)
	}

	delivery, err := w.queue.Receive(t.Context(), job.VideoLane, time.Hour)
	if err != nil || delivery.JobID() != first {
		t.Fatalf("received %v, %v", delivery, err)
	}
	w.start(first)
	w.pass(8 * time.Second)
	w.complete(first, "the result", "video/mp4")
	if delivery, err = w.queue.Receive(t.Context(), job.VideoLane, time.Hour); err != nil || delivery.JobID() != other {
		t.Fatalf("received %v, %v", delivery, err)
	}
	w.start(other)
	shown := w.outlook(second, studio)
	if shown.Position != 1 || shown.Start == nil || shown.Completion == nil ||
		shown.Start.Latest.Sub(shown.Start.Earliest) < 8*time.Second || !shown.Completion.Latest.After(shown.Start.Latest) {
		t.Errorf("the next: %+v", shown)
	}
	if shown := w.outlook(other, rival); shown.Status != "processing" || shown.Position != 0 || shown.Start != nil {
		t.Errorf("in work: %+v", shown)
	}
	if list := w.get("/v1/jobs", studio); strings.Contains(list.body, "queue_position") {
		t.Errorf("the list contains places: %s", list.body)
	}
}
