package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/job"
)

func TestTimesShiftWithClock(t *testing.T) {
	ctx := t.Context()
	for _, step := range []time.Duration{-90 * time.Second, 5 * 24 * time.Hour} {
		now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "a.db"), sqlite.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		accept := func(id string) {
			t.Helper()
			j := newJob(id, "acme")
			j.CreatedAt, j.Deadline = now, now.Add(job.MaxAge)
			if err := db.Jobs().Accept(ctx, j, 0); err != nil {
				t.Fatal(err)
			}
		}
		accept("job_leased")
		leased := receive(t, db, "job_leased", time.Minute)
		accept("job_waiting")
		now = now.Add(step)
		if err := db.ShiftTimes(ctx, step); err != nil {
			t.Fatal(err)
		}
		if overdue, err := db.Jobs().Overdue(ctx, now.Add(job.MaxAge-time.Second), 10); err != nil || len(overdue) != 0 {
			t.Errorf("%v: overdue jobs: %v, %v", step, overdue, err)
		}
		if overdue, err := db.Jobs().Overdue(ctx, now.Add(job.MaxAge), 10); err != nil || len(overdue) != 2 {
			t.Errorf("%v: overdue jobs at the deadline: %v, %v", step, overdue, err)
		}
		receive(t, db, "job_waiting", time.Minute)
		if err := leased.Extend(ctx, time.Minute); err != nil {
			t.Errorf("%v: the lease: %v", step, err)
		}
		// The lease ends exactly on time.
		now = now.Add(time.Minute)
		receive(t, db, "job_leased", time.Minute)
	}
}
