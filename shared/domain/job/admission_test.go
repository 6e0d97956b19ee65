package job_test

import (
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

func TestAdmissionCountsRunningAndStartingWorkers(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	const most, runTime = 8, 30 * time.Second // 15 jobs per running worker
	for _, c := range []struct {
		name  string
		fleet job.Fleet
		jobs  int // jobs accepted from many accounts
	}{
		{"the state is unknown", job.Fleet{}, 120},
		{"all run", job.Fleet{SeenAt: now, Running: 8, Wanted: 8, Most: 8}, 120},
		{"none runs or is wanted", job.Fleet{SeenAt: ago(20 * time.Hour), Most: 8}, 40},
		{"none runs, and they start in a minute", job.Fleet{SeenAt: now, Most: 8, StartTime: time.Minute}, 104},
		{"none runs, and they take as long as jobs have", job.Fleet{SeenAt: now, Most: 8, StartTime: 10 * time.Minute}, 8},
		{"some run, and no more are wanted", job.Fleet{SeenAt: now, Running: 2, Wanted: 2, Most: 8}, 60},
		{"some run, and more have been wanted for a minute",
			job.Fleet{SeenAt: now, Running: 2, Wanted: 8, Most: 8, ShortSince: ago(time.Minute)}, 60},
		{"some run, and none has started for long",
			job.Fleet{SeenAt: now, Running: 2, Wanted: 8, Most: 8, ShortSince: ago(8 * time.Minute)}, 30},
		{"some run, and others that start quickly have not started",
			job.Fleet{SeenAt: now, Running: 2, Wanted: 8, Most: 8, ShortSince: ago(4 * time.Minute), StartTime: time.Minute}, 30},
		{"none runs, and none has started for long",
			job.Fleet{SeenAt: now, Wanted: 8, Most: 8, ShortSince: ago(8 * time.Minute)}, 0},
		{"the state is old",
			job.Fleet{SeenAt: ago(20 * time.Minute), Wanted: 8, Most: 8, ShortSince: ago(25 * time.Minute)}, 120},
		{"a worker runs two jobs of the lane", job.Fleet{SeenAt: now, Running: 1, Wanted: 4, Most: 4,
			ShortSince: ago(time.Hour)}, 30},
		{"more run than the limit", job.Fleet{SeenAt: now, Running: 12, Wanted: 8, Most: 8}, 120},
	} {
		t.Run(c.name, func(t *testing.T) {
			backlog := job.Backlog{RunTime: runTime, Fleet: c.fleet}
			var err error
			for err == nil && backlog.Jobs < 1000 {
				if err = backlog.Admit(most, now); err == nil {
					backlog.Jobs++
				}
			}
			if backlog.Jobs != c.jobs || !fault.Is(err, fault.Limited) {
				t.Errorf("%d jobs were accepted, want %d; then %v", backlog.Jobs, c.jobs, err)
			}
			if c.fleet.Running == 0 && !c.fleet.SeenAt.IsZero() && c.name != "the state is old" &&
				err.(*fault.Error).RetryAfter < 30*time.Second {
				t.Errorf("no worker runs, and callers must retry in %v", err.(*fault.Error).RetryAfter)
			}
		})
	}
}

// The first jobs after scaling to zero are accepted, even from one account.
func TestFirstJobsWithoutWorkerAreAccepted(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for name, fleet := range map[string]job.Fleet{
		"asleep":                   {SeenAt: now.Add(-time.Hour), Most: 4},
		"asleep and slow to start": {SeenAt: now.Add(-time.Hour), Most: 4, StartTime: 9 * time.Minute},
		"being started":            {SeenAt: now, Wanted: 1, Most: 4, ShortSince: now.Add(-2 * time.Minute)},
		"starting for long":        {SeenAt: now, Wanted: 1, Most: 4, ShortSince: now.Add(-6 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			for jobs := range 4 {
				if err := (job.Backlog{Jobs: jobs, AccountJobs: jobs, Fleet: fleet}).Admit(4, now); err != nil {
					t.Errorf("job %d: %v", jobs, err)
				}
			}
		})
	}
}

// One account's ten-minute jobs do not fill the queue for an account without jobs.
func TestSpareSlotIsForOtherAccounts(t *testing.T) {
	for _, c := range []struct {
		name    string
		backlog job.Backlog
		full    bool
	}{
		{"the spare place is free", job.Backlog{Jobs: 9, Running: 1, Spare: 1, Brief: true}, false},
		{"the job is long", job.Backlog{Jobs: 9, Running: 1, Spare: 1}, true},
		{"the spare place is taken", job.Backlog{Jobs: 9, Running: 2, Spare: 1, Brief: true}, true},
		{"the account has its place", job.Backlog{Jobs: 9, Running: 1, Spare: 1, AccountJobs: 1, Brief: true}, true},
		{"there is no spare place", job.Backlog{Jobs: 9}, true},
	} {
		c.backlog.RunTime, c.backlog.Others = job.MaxAge, 1
		for _, wait := range []time.Duration{0, time.Minute} {
			err := c.backlog.AdmitWaiting(wait, 1, time.Now())
			if fault.Is(err, fault.Limited) != c.full || !c.full && err != nil {
				t.Errorf("%s, with a caller that waits %v: %v", c.name, wait, err)
			}
		}
	}
}

// Runs in spare slots slow the job itself down too.
func TestCallerMustWaitForSlowRun(t *testing.T) {
	for running, full := range map[int]bool{1: false, 3: true} {
		backlog := job.Backlog{Jobs: 3, Running: running, Spare: 2, AccountJobs: 1, Others: 2, RunTime: 14 * time.Second}
		if err := backlog.AdmitWaiting(time.Minute, 1, time.Now()); fault.Is(err, fault.Limited) != full {
			t.Errorf("while %d jobs are running: %v", running, err)
		}
	}
}
