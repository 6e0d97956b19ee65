package fleet_test

import (
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

func checkAt(t *testing.T, p *backend, now time.Time, running int) {
	t.Helper()
	p.running = running
	if _, err := newFleet(p, &now).Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A deployment replaces workers that were requested long ago. If the time since that request were taken as their
// startup duration, a sleeping fleet would reject jobs.
func TestReplacedWorkersDoNotRaiseStartupDuration(t *testing.T) {
	for name, dips := range map[string][]int{"one of two": {1}, "both": {0, 1}, "again and again": {1, 2, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			p := &backend{desired: 2, jobs: 4}
			now := start
			checkAt(t, p, now, 0)
			now = now.Add(time.Minute)
			checkAt(t, p, now, 2)
			if learned := p.state.Fleet.Starts(); learned > 5*time.Minute {
				t.Fatalf("the learned start time is %v, want one minute", learned)
			}
			known := p.state.Fleet.Starts()
			now = now.Add(3 * time.Hour)
			checkAt(t, p, now, 2)
			for _, running := range append(dips, 2) {
				now = now.Add(time.Minute)
				checkAt(t, p, now, running)
			}
			if seen := p.state.Fleet; seen.Starts() > known || seen.Stuck(now.Add(time.Hour)) {
				t.Errorf("the start time is %v after the replacement, %v before: %+v", seen.Starts(), known, seen)
			}
			// When the fleet sleeps again, it accepts as many jobs as before.
			p.jobs, p.desired = 0, 0
			now = now.Add(time.Hour)
			checkAt(t, p, now, 0)
			if err := (job.Backlog{Jobs: 20, RunTime: 10 * time.Second, Fleet: p.state.Fleet}).Admit(4, now); err != nil {
				t.Errorf("the sleeping fleet rejects the 21st job of ten seconds: %v", err)
			}
		})
	}
}

func TestSlowerStartsAreLearned(t *testing.T) {
	now := start
	p := &backend{}
	startsIn := func(minutes int) {
		t.Helper()
		p.jobs = 2
		for range minutes + 1 { // the first check requests a worker
			checkAt(t, p, now, 0)
			now = now.Add(time.Minute)
		}
		checkAt(t, p, now, 1)
		p.jobs, p.desired = 0, 0
		now = now.Add(time.Hour)
		checkAt(t, p, now, 0)
		now = now.Add(time.Hour)
	}
	for range 12 {
		startsIn(0)
	}
	if seen := p.state.Fleet.Starts(); seen > 2*time.Minute {
		t.Fatalf("the learned start time is %v, want one minute", seen)
	}
	for range 3 {
		startsIn(7)
	}
	if seen := p.state.Fleet.Starts(); seen < 7*time.Minute || seen > 9*time.Minute {
		t.Errorf("the learned start time is %v, want eight minutes", seen)
	}
	for range 10 {
		startsIn(0)
	}
	known := p.state.Fleet.Starts()
	startsIn(50)
	if seen := p.state.Fleet.Starts(); seen > known+4*time.Minute {
		t.Errorf("the start time is %v after an hour without hardware, %v before", seen, known)
	}
}

func TestWorkersThatDoNotStartAreNoticed(t *testing.T) {
	now := start
	p := &backend{jobs: 8}
	checkAt(t, p, now, 0)
	now = now.Add(2 * time.Minute)
	checkAt(t, p, now, 0)
	if seen := p.state.Fleet; seen.Stuck(now) || seen.Wanted == 0 {
		t.Errorf("soon after workers were wanted: %+v", seen)
	}
	now = now.Add(30 * time.Minute)
	checkAt(t, p, now, 0)
	if seen := p.state.Fleet; !seen.Stuck(now) {
		t.Errorf("long after: %+v", seen)
	}
}

func TestSleepingFleetWritesNothing(t *testing.T) {
	now := start
	p := &backend{}
	checkAt(t, p, now, 0)
	saw := p.saw
	for range 60 {
		now = now.Add(time.Minute)
		checkAt(t, p, now, 0)
	}
	if p.saw != saw {
		t.Errorf("%d writes in an hour without work", p.saw-saw)
	}
}
