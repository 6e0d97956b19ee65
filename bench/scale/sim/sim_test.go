package sim

import (
	"math"
	"strings"
	"testing"
	"time"
)

// of returns the result of a simulation, which fails the test if it cannot be run.
func of(t *testing.T, c Config) *Result {
	t.Helper()
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// window is a simulation of the busiest time.
func window(jobs int, length time.Duration, f Faults) Config {
	return Config{Seed: 7, Jobs: jobs, Window: length, WarmUp: 30 * time.Second, Faults: f}
}

// A whole day with a lost zone, a deploy, scarce workers, and messages that come twice and
// late: every job that was accepted ends, and none is completed or billed twice.
func TestBadDayLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	faults := AllFaults()
	faults.Twice, faults.Late = 0.2, 0.1
	r := of(t, Config{Seed: 7, Jobs: 600, Faults: faults})
	if r.Accepted < 400 {
		t.Fatalf("%d jobs were accepted", r.Accepted)
	}
	if r.Lost != 0 || r.Doubled != 0 {
		t.Errorf("%d jobs were lost, and %d were completed twice", r.Lost, r.Doubled)
	}
	if r.Unbilled != 0 {
		t.Errorf("%d more jobs completed than were billed", r.Unbilled)
	}
	if r.Runs == r.Accepted {
		t.Error("no job had more than one run: the failures did not happen")
	}
	if part := float64(r.Completed) / float64(r.Ended); part < 0.95 {
		t.Errorf("%.3f of the jobs completed", part)
	}
}

// Where one worker of five can run for an hour and a half, what is accepted ends in time all the
// same: no job is accepted on the word of workers that do not come, no account has more waiting
// than its turns with the others serve, and no image whose turn comes too late for its caller. With
// three other seeds up to 1.6 % do not end in time: who sends jobs after them, and so takes turns
// with them, can be guessed only from whose jobs ended last.
func TestScarceWorkersKeepWhatIsAccepted(t *testing.T) {
	t.Parallel()
	w, err := newWorld(Config{Seed: 7, Jobs: 10_000, Window: 75 * time.Minute, WarmUp: 15 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	w.containers.most = 1
	for _, one := range w.fleetOf[1:] {
		one.kill()
	}
	w.prune()
	r := w.run()
	part := float64(r.Completed) / float64(r.Ended)
	t.Logf("%d asked, %d accepted, %.3f of %d in time, %d refused", r.Asked, r.Accepted, part, r.Ended, r.Refused["limited"])
	if part < 0.97 || r.Ended < 400 {
		t.Errorf("%.3f of %d accepted jobs ended in time", part, r.Ended)
	}
	if r.Refused["limited"] == 0 {
		t.Error("no job was refused, although one worker does not do the work of five")
	}
}

// The budget's counter of an account, in one partition with the holds of its jobs, is found as the hottest.
func TestFindsHotPartition(t *testing.T) {
	t.Parallel()
	w, err := newWorld(window(1000, time.Minute, Faults{}))
	if err != nil {
		t.Fatal(err)
	}
	w.reset()
	for range 50 {
		c := w.newClient(w.accounts[0], "video", time.Second)
		if _, err := c.accept(w.newInstance("jobs")); err != nil {
			t.Fatal(err)
		}
	}
	h := w.cloud.DynamoDB.Hottest()[0]
	if h.Table != "usage" || !strings.HasPrefix(h.Key, "budget-used/"+w.accounts[0].Name) || h.Transactions < 50 ||
		h.Writes < 100 {
		t.Errorf("the hottest is %+v", h)
	}
}

// What is multiplied up from a part of a day is what a whole day uses, for each job, and the
// hottest partition of the day is that of its busiest time. Requests are left out: at this
// size a day has cold starts, during which clients poll more often.
func TestWindowStandsForTheDay(t *testing.T) {
	t.Parallel()
	const jobs = 1000
	whole := of(t, Config{Seed: 7, Jobs: jobs})
	part := of(t, window(jobs, 3*time.Hour, Faults{}))
	writes := func(r *Result) (sum float64) {
		for _, table := range r.Tables {
			sum += table.Writes
		}
		return sum / float64(r.Asked)
	}
	if a, b := writes(whole), writes(part); math.Abs(a-b)/a > 0.2 {
		t.Errorf("a job of a day takes %.2f write units, one of its busiest hours %.2f", a, b)
	}
	if a, b := whole.Hottest[0].Share(), part.Hottest[0].Share(); a > 2*b || b > 2*a {
		t.Errorf("the hottest partition is at %.4f in a day, and at %.4f in its busiest hours", a, b)
	}
}

// The busiest part of a day with each failure in its middle: time goes on until each of its
// jobs has ended, none is lost or doubled, and none is missing where waits are told.
func TestBadWindowLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	faults := AllFaults()
	faults.Twice, faults.Late = 0.2, 0.1
	c := window(100_000, 2*time.Minute, faults)
	r := of(t, c)
	if r.Accepted < 100 || r.Lost != 0 || r.Doubled != 0 || r.Unbilled != 0 || r.Ended != r.Accepted {
		t.Errorf("%d accepted, %d ended, %d lost, %d doubled, %d unbilled", r.Accepted, r.Ended, r.Lost, r.Doubled,
			r.Unbilled)
	}
	if r.Runs <= r.Accepted {
		t.Error("no job had more than one run: the failures did not happen")
	}
	begun, ended := peakAt, peakAt+c.Window
	for _, f := range r.Faults {
		if f.At <= begun || f.At >= ended {
			t.Errorf("at %v, outside of the window: %s", f.At, f.What)
		}
	}
	if len(r.Faults) != 3 {
		t.Errorf("the failures are %v", r.Faults)
	}
	told, least := 0, math.MaxInt
	for _, waits := range r.Waits {
		told += len(waits)
	}
	for _, m := range r.Minutes {
		if m.At >= begun {
			least = min(least, m.Workers)
		}
	}
	if told < r.Completed {
		t.Errorf("%d waits are told, and %d jobs completed", told, r.Completed)
	}
	if least > r.Peaks.Tasks*3/4 {
		t.Errorf("of %d workers at least %d ran all the time: none was lost", r.Peaks.Tasks, least)
	}
}

// The busiest seconds of a day with a million jobs leave two thirds of each partition free, and
// nothing is throttled: what spreads accounts, counters and lanes holds.
func TestMillionJobsStayCool(t *testing.T) {
	t.Parallel()
	c := window(1_000_000, 8*time.Second, Faults{Throttle: true, Twice: 0.01, Late: 0.01})
	c.WarmUp = 15 * time.Second
	r := of(t, c)
	if h := r.Hottest[0]; h.Share() > 1.0/3 || h.Share() < 0.02 {
		t.Errorf("the hottest partition is at %.0f %%: %+v", 100*h.Share(), h)
	}
	for name, table := range r.Tables {
		if table.Throttled > 0 {
			t.Errorf("%s refused %d attempts", name, table.Throttled)
		}
	}
	if r.Lost != 0 || r.Doubled != 0 || r.Unbilled != 0 || r.Accepted < 200 {
		t.Errorf("%d accepted, %d lost, %d doubled, %d unbilled", r.Accepted, r.Lost, r.Doubled, r.Unbilled)
	}
	if r.Uploads == 0 || r.Listed == 0 || r.Completions == 0 || r.Connects == 0 {
		t.Errorf("%d uploads, %d pages, %d completions, %d sessions", r.Uploads, r.Listed, r.Completions, r.Connects)
	}
	if len(r.FilesRefused)+len(r.ListsRefused)+len(r.SessionsRefused) != 0 {
		t.Errorf("refused: files %v, lists %v, sessions %v", r.FilesRefused, r.ListsRefused, r.SessionsRefused)
	}
}
