package job_test

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/sqlitetest"
)

// See docs/contract/jobs.md#admission.
func TestAdmissionLimitsBacklog(t *testing.T) {
	for _, c := range []struct {
		name    string
		backlog job.Backlog
		workers int
		admit   bool
	}{
		{"an idle lane", job.Backlog{}, 1, true},
		{"an idle lane whose jobs take long", job.Backlog{RunTime: 9 * time.Minute}, 1, true},
		{"the run time is unknown", job.Backlog{Jobs: 20, AccountJobs: 20}, 1, true},
		{"the run time is unknown, and many jobs wait", job.Backlog{Jobs: 50, AccountJobs: 10}, 1, false},
		{"hundreds of quick jobs", job.Backlog{Jobs: 300, AccountJobs: 100, RunTime: time.Second}, 1, true},
		{"7.5 minutes of work ahead", job.Backlog{Jobs: 45, AccountJobs: 1, RunTime: 10 * time.Second}, 1, false},
		{"the same with a second worker", job.Backlog{Jobs: 45, AccountJobs: 1, RunTime: 10 * time.Second}, 2, true},
		{
			"one account leaves a quarter to other accounts", job.Backlog{Jobs: 34, AccountJobs: 34, RunTime: 10 * time.Second}, 1,
			false,
		},
		{"other accounts use the last quarter", job.Backlog{Jobs: 34, AccountJobs: 0, RunTime: 10 * time.Second}, 1, true},
		{"it takes turns with two others and has used its third", job.Backlog{Jobs: 20, AccountJobs: 15, Others: 2,
			RunTime: 10 * time.Second}, 1, false},
		{"it has used less than its third", job.Backlog{Jobs: 20, AccountJobs: 14, Others: 2, RunTime: 10 * time.Second}, 1, true},
		{"others keep one of four workers busy", job.Backlog{Jobs: 135, AccountJobs: 134, Others: 9, RunTime: 10 * time.Second}, 4,
			true},
		{"others keep two of four workers busy", job.Backlog{Jobs: 136, AccountJobs: 134, Others: 9, RunTime: 10 * time.Second}, 4, false},
		{"many take turns, and another account arrives", job.Backlog{Jobs: 40, Others: 100, RunTime: 10 * time.Second}, 1, true},
		{"long jobs, every worker busy", job.Backlog{Jobs: 2, AccountJobs: 0, RunTime: 8 * time.Minute}, 2, false},
		{"long jobs, one worker idle", job.Backlog{Jobs: 1, AccountJobs: 1, RunTime: 8 * time.Minute}, 2, true},
	} {
		err := c.backlog.Admit(c.workers, time.Now())
		if (err == nil) != c.admit {
			t.Errorf("%s: got %v, want admitted=%v", c.name, err, c.admit)
		}
		if err != nil && (!fault.Is(err, fault.Limited) || err.(*fault.Error).RetryAfter < time.Second) {
			t.Errorf("%s: the error %v is not fault.Limited with RetryAfter", c.name, err)
		}
	}
}

func TestLowPriorityDoesNotFillQueueForNormalJobs(t *testing.T) {
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
	service := job.NewService(job.Config{
		Store: db.Jobs(), Now: time.Now, Random: rand.Reader, Workers: map[job.Lane]int{job.VideoLane: 1}, Priorities: true,
	})
	submit := func(priority string) error {
		id, err := service.NewID()
		if err != nil {
			t.Fatal(err)
		}
		_, err = service.Submit(t.Context(), job.Job{
			ID: id, Account: "acme", Model: "m", Lane: job.VideoLane,
			Request: job.Request{Options: map[string]any{job.Priority: priority}},
		}, 0, 0)
		return err
	}
	for range 33 { // three quarters of 7.5 minutes
		if err := submit(job.LowPriority); err != nil {
			t.Fatal(err)
		}
	}
	if err := submit(job.LowPriority); !fault.Is(err, fault.Limited) {
		t.Errorf("one low job too many: %v, want limited", err)
	}
	if err := submit("normal"); err != nil {
		t.Errorf("a normal job: %v", err)
	}
}

// Jobs that get their turn later than this one do not count.
func TestAdmissionRespectsCallersWait(t *testing.T) {
	const each = 2 * time.Second
	asleep := job.Fleet{SeenAt: time.Now(), Most: 1}
	for _, c := range []struct {
		name    string
		backlog job.Backlog
		wait    time.Duration
		workers int
		admit   bool
	}{
		{"an idle lane", job.Backlog{}, time.Minute, 1, true},
		{"the run time is unknown", job.Backlog{Jobs: 10, AccountJobs: 10}, time.Minute, 1, true},
		{"22 jobs of 2 s ahead", job.Backlog{Jobs: 22, AccountJobs: 22, RunTime: each}, time.Minute, 1, true},
		{"23 jobs of 2 s ahead", job.Backlog{Jobs: 23, AccountJobs: 23, RunTime: each}, time.Minute, 1, false},
		{"with a second worker", job.Backlog{Jobs: 23, AccountJobs: 23, RunTime: each}, time.Minute, 2, true},
		{"the caller does not wait", job.Backlog{Jobs: 23, AccountJobs: 23, RunTime: each}, 0, 1, true},
		{"jobs of another account, which takes turns", job.Backlog{Jobs: 150, Others: 1, RunTime: each}, time.Minute, 1, true},
		{"jobs of both accounts in turns", job.Backlog{Jobs: 150, AccountJobs: 11, Others: 1, RunTime: each},
			time.Minute, 1, false},
		{"a job of 25 s ahead", job.Backlog{Jobs: 1, AccountJobs: 1, RunTime: 25 * time.Second}, time.Minute, 1, true},
		{"a job of 40 s ahead", job.Backlog{Jobs: 1, AccountJobs: 1, RunTime: 40 * time.Second},
			time.Minute, 1, false},
		{"before the first worker starts", job.Backlog{RunTime: 2 * time.Minute, Fleet: asleep}, time.Minute, 1, true},
		{"one worker idle", job.Backlog{Jobs: 1, AccountJobs: 1, RunTime: time.Minute}, time.Minute, 2, true},
		{"a full queue", job.Backlog{Jobs: 225, Others: 1, RunTime: each}, time.Minute, 1, false},
	} {
		if err := c.backlog.AdmitWaiting(c.wait, c.workers, time.Now()); (err == nil) != c.admit {
			t.Errorf("%s: got %v, want admitted=%v", c.name, err, c.admit)
		}
	}
}

func TestAdmissionIsExactUnderConcurrency(t *testing.T) {
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	service := job.NewService(job.Config{
		Store: db.Jobs(), Now: time.Now, Random: rand.Reader,
		Workers: map[job.Lane]int{job.VideoLane: 1, job.ImageLane: 1},
	})
	submit := func(lane job.Lane, wait time.Duration) (string, error) {
		id, err := service.NewID()
		if err != nil {
			t.Error(err)
		}
		_, err = service.Submit(t.Context(), job.Job{ID: id, Account: "acme", Model: "m", Lane: lane}, 0, wait)
		return id, err
	}
	atOnce := func(calls int, lane job.Lane, wait time.Duration) int {
		var accepted atomic.Int32
		var callers sync.WaitGroup
		for range calls {
			callers.Go(func() {
				_, err := submit(lane, wait)
				switch {
				case err == nil:
					accepted.Add(1)
				case !fault.Is(err, fault.Limited):
					t.Error(err)
				}
			})
		}
		callers.Wait()
		return int(accepted.Load())
	}
	// want is the number of jobs that one account can submit one after another on an idle lane.
	want := 0
	for (job.Backlog{Jobs: want, AccountJobs: want}).Admit(1, time.Now()) == nil {
		want++
	}
	if accepted := atOnce(want+30, job.VideoLane, 0); accepted != want {
		t.Errorf("%d jobs of a burst were accepted, want %d", accepted, want)
	}
	id, err := submit(job.ImageLane, 0)
	must(err)
	now := time.Now()
	_, err = db.Jobs().Start(t.Context(), id, "n1", now)
	must(err)
	must(db.Jobs().Complete(t.Context(), id, "n1", job.Result{Blob: "b"}, now.Add(5*time.Second)))
	// The last of nine 5 s images is done after 45 s.
	if accepted := atOnce(20, job.ImageLane, time.Minute); accepted != 9 {
		t.Errorf("%d images of a burst were accepted whose callers wait for a minute, want 9", accepted)
	}
}

type fullDisk struct{ job.Store }

func (fullDisk) Expire(context.Context, string, time.Time) (job.Job, error) {
	return job.Job{}, fault.New(fault.StorageFull, "disk full")
}

func TestDeadlineAppliesOnFullDisk(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: clock})
	service := job.NewService(job.Config{Store: fullDisk{db.Jobs()}, Now: clock, Random: rand.Reader})
	id, err := service.NewID()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.Submit(
		t.Context(), job.Job{ID: id, Account: "acme", Model: "m", Lane: job.VideoLane}, 0, 0,
	); err != nil {
		t.Fatal(err)
	}
	now = now.Add(job.MaxAge)
	j, err := service.Get(t.Context(), "acme", id)
	if err != nil || j.Status != job.Failed || j.Failure == nil || j.Failure.Code != job.TimedOut ||
		!j.CompletedAt.Equal(now) {
		t.Errorf("got %+v, %v", j, err)
	}
}
