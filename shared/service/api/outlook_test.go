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
	w.pass(3 * time.Second) // the service reads the queue again
	var told outlook
	if err := json.Unmarshal([]byte(w.get("/v1/jobs/"+id, key).body), &told); err != nil {
		w.t.Fatal(err)
	}
	return told
}

// A pending job shows its place in the queue. It shows its expected end once a job of its model has run
// (docs/contract/jobs.md#outlook).
func TestPendingJobShowsItsOutlook(t *testing.T) {
	w := newWorld(t, setup{workers: 1})
	w.stopClock()
	submit := func(key string) string {
		defer w.pass(time.Second) // the order of creation decides the place
		return w.submit(key)
	}
	first, second, third, other := submit(studio), submit(studio), submit(studio), submit(rival)
	for id, want := range map[string]int{first: 2, second: 3, third: 4} {
		if told := w.outlook(id, studio); told.Position != want || told.Start != nil || told.Completion != nil {
			t.Errorf("before any completed job: %+v, want only the place %d", told, want)
		}
	}
	if told := w.outlook(other, rival); told.Position != 2 {
		t.Errorf("the other account's: %+v", told)
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
	told := w.outlook(second, studio)
	if told.Position != 1 || told.Start == nil || told.Completion == nil ||
		told.Start.Latest.Sub(told.Start.Earliest) < 8*time.Second || !told.Completion.Latest.After(told.Start.Latest) {
		t.Errorf("the next: %+v", told)
	}
	if told := w.outlook(other, rival); told.Status != "processing" || told.Position != 0 || told.Start != nil {
		t.Errorf("in work: %+v", told)
	}
	if list := w.get("/v1/jobs", studio); strings.Contains(list.body, "queue_position") {
		t.Errorf("the list contains places: %s", list.body)
	}
}
