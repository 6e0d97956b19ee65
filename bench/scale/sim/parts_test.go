package sim

import (
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

// newTest returns a world that a test moves by itself.
func newTest(t *testing.T) *World {
	t.Helper()
	w, err := newWorld(window(1000, time.Minute, Faults{}))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// An instance serves one call at a time, and the next one of its function alone.
func TestInstancesServeOneCallAtATime(t *testing.T) {
	t.Parallel()
	w := newTest(t)
	first, done := w.begin("jobs")
	second, _ := w.begin("jobs")
	if first == second {
		t.Error("one instance serves two calls")
	}
	done()
	if other, _ := w.begin("images"); other == first {
		t.Error("an instance serves another function")
	}
	again, done := w.begin("jobs")
	if again != first {
		t.Error("a free instance is not used again")
	}
	done()
	w.clock.Run(w.clock.Now().Add(functionIdle + time.Second))
	if late, _ := w.begin("jobs"); late == first {
		t.Error("an instance outlives a long time without calls")
	}
	if got := w.most.byFunction["jobs"]; got != 2 {
		t.Errorf("%d instances served at once", got)
	}
}

// An image that no worker edits within 60 s fails then, with its call.
func TestImageFailsWithItsCall(t *testing.T) {
	t.Parallel()
	w := newTest(t)
	for _, one := range w.fleetOf {
		one.kill()
	}
	c := w.newClient(w.accounts[0], job.ImageLane, time.Second)
	c.submit()
	accepted := w.clock.Now()
	w.clock.Run(accepted.Add(imageWait + 5*time.Second))
	if took := c.job.ended.Sub(accepted); c.job.status != job.Failed || took < imageWait || took > imageWait+2*time.Second {
		t.Errorf("after %v the job is %s", took, c.job.status)
	}
	if w.lambdas["images"] != 0 {
		t.Error("its function goes on")
	}
}

// A quarter of the workers that run is taken, and none comes in their place while it lasts.
func TestScarceWorkers(t *testing.T) {
	t.Parallel()
	w := newTest(t)
	for w.running() < 8 {
		w.startWorker()
	}
	w.containers.desired = 8
	w.makeScarce(time.Hour)
	if w.running() != 6 {
		t.Errorf("of 8 workers %d run on", w.running())
	}
	w.containers.reach()
	if w.containers.starting != 0 {
		t.Errorf("%d start in their place", w.containers.starting)
	}
	w.clock.Run(w.clock.Now().Add(59 * time.Minute))
	if w.running() > 6 {
		t.Errorf("%d run before it is over", w.running())
	}
}

// A fleet of one worker feels both: another starts in its place.
func TestSmallFleetLosesItsWorker(t *testing.T) {
	t.Parallel()
	for what, fault := range map[string]func(*World){
		"scarce": func(w *World) { w.makeScarce(time.Hour) },
		"zone":   func(w *World) { w.loseZone(w.busiestZone()) },
	} {
		w := newTest(t)
		for _, one := range w.fleetOf[1:] {
			one.kill()
		}
		w.prune()
		w.containers.desired = 1
		if fault(w); w.running() != 0 {
			t.Errorf("%s: %d workers run on", what, w.running())
		}
		w.clock.Run(w.clock.Now().Add(noticeTime + longestStart))
		if w.running() != 1 {
			t.Errorf("%s: %d workers run later", what, w.running())
		}
	}
}

// PUT requests are counted by what S3 divides names by.
func TestPutsByPrefix(t *testing.T) {
	t.Parallel()
	w := newTest(t)
	var p puts
	for _, name := range []string{"jobs/AB/job_1/data", "jobs/AB/job_2/result-1", "jobs/CD/job_3/data"} {
		p.add(w.clock.Now(), name, 1)
	}
	if p.most != 2 || p.total != 3 {
		t.Errorf("%d to one prefix, %d in all", p.most, p.total)
	}
	p.add(w.clock.Now().Add(time.Second), "jobs/AB/job_4/data", 1)
	if p.most != 2 {
		t.Errorf("%d in one second", p.most)
	}
}
