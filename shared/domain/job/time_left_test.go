package job_test

import (
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

func TestTimeLeftComesFromFirstRun(t *testing.T) {
	begun := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	running := job.Job{
		Status: job.Processing, Runs: 1, Progress: 0.2, StartedAt: begun.Add(time.Minute), Deadline: begun.Add(job.MaxAge),
	}
	with := func(change func(*job.Job)) job.Job {
		j := running
		change(&j)
		return j
	}
	now := begun.Add(time.Minute + 10*time.Second)
	for says, c := range map[string]struct {
		job   job.Job
		left  time.Duration
		known bool
	}{
		"a fifth in ten seconds":   {running, 40 * time.Second, true},
		"not before its deadline":  {with(func(j *job.Job) { j.Deadline = now.Add(time.Second) }), time.Second, true},
		"a clock that went back":   {with(func(j *job.Job) { j.StartedAt = now.Add(time.Second) }), 0, true},
		"hardly started":           {with(func(j *job.Job) { j.Progress = 0.04 }), 0, false},
		"a second run":             {with(func(j *job.Job) { j.Runs = 2 }), 0, false},
		"waiting":                  {with(func(j *job.Job) { j.Status = job.Pending }), 0, false},
		"ended":                    {with(func(j *job.Job) { j.Status = job.Completed }), 0, false},
		"only storing remains":     {with(func(j *job.Job) { j.Progress = 1 }), 0, true},
		"overdue but not recorded": {with(func(j *job.Job) { j.Deadline = now.Add(-time.Second) }), 0, true},
	} {
		if left, known := c.job.Left(now); left != c.left || known != c.known {
			t.Errorf("%s: %v, %v", says, left, known)
		}
	}
}
