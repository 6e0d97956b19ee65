package sqlite_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
)

func start(t *testing.T, db *sqlite.DB, id, nonce string) job.Job {
	t.Helper()
	j, err := db.Jobs().Start(t.Context(), id, nonce, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func crash(t *testing.T, db *sqlite.DB) {
	t.Helper()
	if err := db.Queue().RecoverLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func runs(t *testing.T, db *sqlite.DB, id string) int {
	t.Helper()
	j, err := db.Jobs().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j.Runs
}

func tryReceive(t *testing.T, db *sqlite.DB) worker.Delivery {
	t.Helper()
	d, err := db.Queue().TryReceive(t.Context(), job.VideoLane, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A server crash invalidates the current runs of leased jobs, but does not use up an attempt.
func TestCrashDoesNotCountAsRun(t *testing.T) {
	db := open(t)
	accept(t, db, "job_1", "job_2")
	receive(t, db, "job_1", time.Hour)
	start(t, db, "job_1", "n1")
	failed := receive(t, db, "job_2", time.Hour)
	start(t, db, "job_2", "m1")
	if err := failed.Nack(t.Context(), 0); err != nil { // the engine failed
		t.Fatal(err)
	}
	crash(t, db)
	if got := runs(t, db, "job_1"); got != 0 {
		t.Errorf("the running job has %d runs, want none", got)
	}
	if got := runs(t, db, "job_2"); got != 1 {
		t.Errorf("the job whose engine had failed has %d runs, want 1", got)
	}
	if err := db.Jobs().Complete(t.Context(), "job_1", "n1", job.Result{Blob: "a"}, time.Now()); err == nil {
		t.Error("a run from before the crash could still end the job")
	}
	for range 2 {
		d, err := db.Queue().Receive(t.Context(), job.VideoLane, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if j := start(t, db, d.JobID(), "after "+d.JobID()); j.Runs == 0 {
			t.Errorf("%s has no run", d.JobID())
		}
		if err := d.Complete(t.Context(), "after "+d.JobID(), job.Result{Blob: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	receiveNone(t, db)
}

// If a job crashes the server, the other leased jobs keep all their runs.
func TestJobThatCrashesServerFails(t *testing.T) {
	db := open(t)
	accept(t, db, "job_bad", "job_1", "job_2")
	crashes := 0
	for attempt := 0; ; attempt++ {
		if attempt > 20 {
			t.Fatal("the server crashes endlessly")
		}
		bad := false
		for _, free := range []int{1, 2, 3} { // number of free workers
			d := tryReceive(t, db)
			if d == nil {
				break
			}
			nonce := fmt.Sprint(attempt, "-", free)
			_, err := db.Jobs().Start(t.Context(), d.JobID(), nonce, time.Now())
			switch {
			case errors.Is(err, job.ErrNoRunsLeft) && d.JobID() == "job_bad":
				if err := d.Fail(t.Context(), "", job.WorkerLostFailure()); err != nil {
					t.Fatal(err)
				}
			case err != nil:
				t.Fatalf("%s: %v", d.JobID(), err)
			case d.JobID() == "job_bad":
				bad = true
			case crashes > 0 && !bad:
				if err := d.Complete(t.Context(), nonce, job.Result{Blob: "a"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if j, err := db.Jobs().Get(t.Context(), "job_bad"); err != nil || j.Status == job.Failed {
			break
		}
		if bad {
			crashes++
			crash(t, db)
		}
	}
	if want := job.FreeCrashes + job.MaxRuns; crashes != want {
		t.Errorf("%d crashes until the job failed, want %d", crashes, want)
	}
	for _, id := range []string{"job_1", "job_2"} {
		if j, err := db.Jobs().Get(t.Context(), id); err != nil || j.Status == job.Failed || j.Runs > 1 {
			t.Errorf("%s is %s after %d runs, %v", id, j.Status, j.Runs, err)
		}
	}
}

// Jobs that were leased during a crash are leased one at a time, even across lanes.
func TestSuspectedJobsRunAlone(t *testing.T) {
	db := open(t)
	accept(t, db, "job_1", "job_2")
	image := newJob("job_3", "globex")
	image.Lane = job.ImageLane
	if err := db.Jobs().Accept(t.Context(), image, 0); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"job_1", "job_2"} {
		receive(t, db, id, time.Hour)
		start(t, db, id, "n1")
	}
	if d, err := db.Queue().Receive(t.Context(), job.ImageLane, time.Hour); err != nil || d.JobID() != "job_3" {
		t.Fatalf("received %v, %v", d, err)
	}
	start(t, db, "job_3", "n1")
	crash(t, db)
	first := receive(t, db, "job_1", time.Hour)
	receiveNone(t, db)
	accept(t, db, "job_4")
	receive(t, db, "job_4", time.Hour)
	if err := first.Nack(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	second, err := db.Queue().Receive(t.Context(), job.ImageLane, time.Hour)
	if err != nil || second.JobID() != "job_3" {
		t.Fatalf("received %v, %v", second, err)
	}
	receiveNone(t, db)
	if err := db.Jobs().Fail(t.Context(), "job_3", "", job.Failure{Code: job.Cancelled}, time.Now()); err != nil {
		t.Fatal(err)
	}
	receive(t, db, "job_2", time.Hour)
}
