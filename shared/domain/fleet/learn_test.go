package fleet_test

import (
	"testing"
	"time"

	"cutroom/shared/domain/job"
)

// lookAt makes a check of a fleet with this many running workers.
func lookAt(t *testing.T, p *parts, now time.Time, running int) {
	t.Helper()
	p.running = running
	if _, err := newFleet(p, &now).Look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Workers that are replaced, as in each deploy, were wanted long ago. That is not how long
// they take to start: a fleet that slept would be taken to need it, and jobs refused.
func TestAReplacedWorkerIsNoLongStart(t *testing.T) {
	for name, dips := range map[string][]int{"one of two": {1}, "both": {0, 1}, "again and again": {1, 2, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			p := &parts{desired: 2, jobs: 4}
			now := start
			lookAt(t, p, now, 0)
			now = now.Add(time.Minute)
			lookAt(t, p, now, 2)
			if learned := p.stamp.Fleet.Starts(); learned > 5*time.Minute {
				t.Fatalf("workers that started in a minute take %v", learned)
			}
			known := p.stamp.Fleet.Starts()
			now = now.Add(3 * time.Hour)
			lookAt(t, p, now, 2)
			for _, running := range append(dips, 2) {
				now = now.Add(time.Minute)
				lookAt(t, p, now, running)
			}
			if told := p.stamp.Fleet; told.Starts() > known || told.Stuck(now.Add(time.Hour)) {
				t.Errorf("after the replacement workers take %v to start, %v before: %+v", told.Starts(), known, told)
			}
			// Asleep again, it accepts the same as before.
			p.jobs, p.desired = 0, 0
			now = now.Add(time.Hour)
			lookAt(t, p, now, 0)
			if err := (job.Backlog{Jobs: 20, RunTime: 10 * time.Second, Fleet: p.stamp.Fleet}).Admit(4, now); err != nil {
				t.Errorf("asleep, it refuses the 21st of the jobs of ten seconds: %v", err)
			}
		})
	}
}

// A fleet learns that its workers take longer to start, even after it expected no start.
func TestAFleetThatBecomesSlowIsLearned(t *testing.T) {
	now := start
	p := &parts{}
	startsIn := func(minutes int) {
		t.Helper()
		p.jobs = 2
		for range minutes + 1 { // the first look wants a worker
			lookAt(t, p, now, 0)
			now = now.Add(time.Minute)
		}
		lookAt(t, p, now, 1)
		p.jobs, p.desired = 0, 0
		now = now.Add(time.Hour)
		lookAt(t, p, now, 0)
		now = now.Add(time.Hour)
	}
	for range 12 {
		startsIn(0)
	}
	if told := p.stamp.Fleet.Starts(); told > 2*time.Minute {
		t.Fatalf("workers that start in a minute take %v", told)
	}
	for range 3 {
		startsIn(7)
	}
	if told := p.stamp.Fleet.Starts(); told < 7*time.Minute || told > 9*time.Minute {
		t.Errorf("workers that start in eight minutes take %v", told)
	}
	for range 10 {
		startsIn(0)
	}
	known := p.stamp.Fleet.Starts()
	startsIn(50)
	if told := p.stamp.Fleet.Starts(); told > known+4*time.Minute {
		t.Errorf("after an hour without hardware workers take %v to start, %v before", told, known)
	}
}
