package job_test

import (
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/sqlitetest"
)

// See docs/contract/jobs.md.
func TestReaperEndsJobs(t *testing.T) {
	const (
		pending    = "pending"
		processing = "processing"
		completed  = "completed"
	)
	stopped := func(stop job.StopReason) func(r *job.Reaper) error {
		return func(r *job.Reaper) error { return r.Stopped(t.Context(), "job_1", stop) }
	}
	givenUp := func(r *job.Reaper) error { return r.GivenUp(t.Context(), "job_1") }
	for _, c := range []struct {
		name   string
		state  string
		after  time.Duration
		report func(r *job.Reaper) error
		want   job.Status
		code   job.Code
	}{
		{
			"orchestration broke before a worker had the job", pending, time.Minute, stopped(job.Broken), job.Failed,
			job.EngineError,
		},
		{
			"orchestration broke while a worker had it", processing, time.Minute, stopped(job.Broken), job.Failed,
			job.EngineError,
		},
		{
			"a write was rejected for a job that no worker has had", pending, time.Minute, stopped(job.Refused), job.Failed,
			job.EngineError,
		},
		{"a write was rejected because another run has the job", processing, time.Minute, stopped(job.Refused), job.Processing, ""},
		{
			"a write was rejected because of the deadline", processing, job.MaxAge, stopped(job.Refused), job.Failed,
			job.TimedOut,
		},
		{"a write was rejected because the job had ended", completed, time.Minute, stopped(job.Refused), job.Completed, ""},
		{"a person stopped the orchestration", processing, time.Minute, stopped(job.Aborted), job.Failed, job.Cancelled},
		{"a person stopped it too late", completed, time.Minute, stopped(job.Aborted), job.Completed, ""},
		{"orchestration overran", processing, time.Minute, stopped(job.Overran), job.Failed, job.TimedOut},
		{
			"orchestration overran and the deadline had passed", pending, job.MaxAge, stopped(job.Overran), job.Failed,
			job.TimedOut,
		},
		{"the queue gave up on a job", processing, time.Minute, givenUp, job.Failed, job.WorkerLost},
		{"the queue gave up on a job that no worker has had", pending, time.Minute, givenUp, job.Failed, job.WorkerLost},
		{"the queue gave up on a job that has ended", completed, time.Minute, givenUp, job.Completed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			created := time.Now().UTC().Truncate(time.Millisecond)
			db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
			jobs := db.Jobs()
			accept(t, jobs, c.state, created)
			reaper := &job.Reaper{Store: jobs, Now: func() time.Time { return created.Add(c.after) }}
			for range 2 { // events are delivered at least once
				if err := c.report(reaper); err != nil {
					t.Fatal(err)
				}
			}
			got, err := jobs.Get(t.Context(), "job_1")
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != c.want {
				t.Errorf("the job is %s, want %s", got.Status, c.want)
			}
			if c.code != "" && (got.Failure == nil || got.Failure.Code != c.code) {
				t.Errorf("the failure is %+v, want %s", got.Failure, c.code)
			}
		})
	}
	t.Run("the job is unknown", func(t *testing.T) {
		db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: time.Now})
		reaper := &job.Reaper{Store: db.Jobs(), Now: time.Now}
		for _, report := range []func(r *job.Reaper) error{givenUp, stopped(job.Broken)} {
			if err := report(reaper); err != nil {
				t.Error(err)
			}
		}
	})
}

func accept(t *testing.T, jobs *sqlite.Jobs, state string, created time.Time) {
	t.Helper()
	err := jobs.Accept(t.Context(), job.Job{
		ID: "job_1", Account: "acme", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
		CreatedAt: created, Deadline: created.Add(job.MaxAge),
	}, 0)
	if err == nil && state != "pending" {
		_, err = jobs.Start(t.Context(), "job_1", "n1", created)
	}
	if err == nil && state == "completed" {
		err = jobs.Complete(t.Context(), "job_1", "n1", job.Result{Blob: "a"}, created)
	}
	if err != nil {
		t.Fatal(err)
	}
}
