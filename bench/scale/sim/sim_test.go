package sim

import (
	"testing"
	"time"

	"cutroom/shared/testkit/thorough"
)

// exact runs a simulation and checks that it did not lose, repeat or miss any job.
func exact(t *testing.T, w *World, err error) *Result {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	r := w.run()
	t.Logf("%d asked, %d ended, %d completed, %d runs; rejected %v", r.Asked, r.Ended, r.Completed, r.Runs, r.Rejected)
	if r.Lost != 0 || r.Doubled != 0 || r.Unbilled != 0 || r.Ended != r.Done["jobs"] {
		t.Errorf("%d lost, %d doubled, %d unbilled", r.Lost, r.Doubled, r.Unbilled)
	}
	return r
}

func ran(r *Result) (jobs int) {
	for _, waits := range r.Waits {
		jobs += len(waits)
	}
	return jobs
}

// The day has a shortage of workers, a lost zone, a deployment, and late or duplicate messages.
// Every accepted job ends, and none is completed or billed twice.
func TestBadDayLosesAndRepeatsNoJobs(t *testing.T) {
	t.Parallel()
	w, err := newWorld(Config{Seed: 7, Jobs: 600, Failures: true, Strays: 0.2})
	r := exact(t, w, err)
	if r.Ended < 400 || r.Runs <= ran(r) {
		t.Error("no job had more than one run: the failures did not happen")
	}
	if part := float64(r.Completed) / float64(r.Ended); part < 0.95 {
		t.Errorf("%.3f of the jobs completed", part)
	}
}

// All failures happen during the busiest minutes. Every accepted job ends exactly once.
func TestBadWindowLosesAndRepeatsNoJobs(t *testing.T) {
	t.Parallel()
	w, err := newWorld(Config{
		Seed: 7, Jobs: 100_000, Window: 2 * time.Minute, WarmUp: 30 * time.Second, Failures: true, Strays: 0.2,
	})
	r := exact(t, w, err)
	if r.Ended < 100 || r.Runs <= ran(r) || r.Peaks.FewestWorkers > r.Peaks.Tasks*3/4 {
		t.Errorf("%d jobs ran, and of %d workers at least %d ran: the failures did not happen",
			ran(r), r.Peaks.Tasks, r.Peaks.FewestWorkers)
	}
}

// For 45 minutes, only a fifth of the needed workers run. Accepted jobs still end in time, because admission
// rejects the others. It does not count workers that fail to start. It limits each account's waiting jobs to its
// turns among the accounts. It rejects images whose turn would come too late.
func TestFewWorkersCompleteAcceptedJobs(t *testing.T) {
	t.Parallel()
	w, err := newWorld(Config{Seed: 7, Jobs: 10_000, Window: 40 * time.Minute, WarmUp: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	w.containers.most = 1
	for _, one := range w.workers[1:] {
		one.kill()
	}
	r := exact(t, w, nil)
	if part := float64(r.Completed) / float64(r.Ended); part < 0.97 || r.Ended < 200 {
		t.Errorf("%.3f of %d accepted jobs ended in time", part, r.Ended)
	}
	if r.Rejected["jobs: limited"] == 0 {
		t.Error("no job was rejected, although one worker cannot do the work of five")
	}
}

// In the busiest seconds of a day with a million jobs, nothing is rejected or throttled. No partition uses more
// than a third of its capacity, except the budget's partition if all jobs belong to one account.
func TestMillionJobsAvoidHotPartitions(t *testing.T) {
	thorough.Only(t)
	t.Parallel()
	for what, most := range map[string]float64{"many accounts": 1.0 / 3, "one account": 1} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := Config{Seed: 7, Jobs: 1_000_000, Window: 8 * time.Second, WarmUp: 15 * time.Second, Strays: 0.01}
			c.OneAccount = what == "one account"
			w, err := newWorld(c)
			r := exact(t, w, err)
			if h := r.Hottest[0]; h.Utilization() > most || h.Utilization() < 0.02 {
				t.Errorf("the hottest partition is at %.0f %%: %+v", 100*h.Utilization(), h)
			}
			for name, table := range r.Tables {
				if table.Throttled > 0 {
					t.Errorf("%s rejected %d attempts", name, table.Throttled)
				}
			}
			if r.Ended < 200 || r.Ended < r.Asked || len(r.Done) != 5 || len(r.Rejected) > 0 {
				t.Errorf("of %d jobs %d ended; done: %v, rejected: %v", r.Asked, r.Ended, r.Done, r.Rejected)
			}
		})
	}
}
