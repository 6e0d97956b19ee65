package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
)

// cloud simulates a fleet's environment second by second, with the delays that AWS documents: queue lengths are up to
// a minute old, schedules start up to a minute late, containers take minutes to start, and events can be lost.
type cloud struct {
	*backend
	t      *testing.T
	random *rand.Rand
	now    time.Time
	fleet  *fleet.Fleet

	startTime time.Duration // from requesting a worker until it accepts jobs
	nextCheck time.Time
	// rises lists the pending checks that follow a raised number of workers.
	rises []simRise

	workers []*simWorker
	waiting map[job.Lane][]*simJob
	// lengths holds the queue lengths of the last minute, oldest first.
	lengths map[job.Lane][]int
	jobs    []*simJob
	changes int
}

type simRise struct {
	at   time.Time
	left int
}

type simJob struct {
	lane              job.Lane
	accepted, started time.Time
	takes             time.Duration
}

// simWorker works on at most one job of each lane.
type simWorker struct {
	ready time.Time
	busy  map[job.Lane]time.Time
}

func (w *simWorker) isBusy(now time.Time) bool {
	for _, until := range w.busy {
		if now.Before(until) {
			return true
		}
	}
	return false
}

func newCloud(t *testing.T, r fleet.Rules, startTime time.Duration, seed uint64) *cloud {
	c := &cloud{
		backend: &backend{}, t: t, random: rand.New(rand.NewPCG(seed, 1)), now: start, startTime: startTime,
		waiting: map[job.Lane][]*simJob{}, lengths: map[job.Lane][]int{}, nextCheck: start.Add(time.Minute),
	}
	c.fleet = &fleet.Fleet{Rules: r, Store: c, Lengths: c, Service: c, Now: func() time.Time { return c.now }}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// Length returns a queue length that is as old as SQS allows.
func (c *cloud) Length(_ context.Context, lane job.Lane) (int, error) {
	past := c.lengths[lane]
	if len(past) == 0 {
		return 0, nil
	}
	return past[c.random.IntN(len(past))], nil
}

func (c *cloud) SetDesired(ctx context.Context, n int) error {
	c.changes++
	return c.backend.SetDesired(ctx, n)
}

func (c *cloud) Tasks(ctx context.Context) (desired, running int, err error) {
	for _, w := range c.workers {
		if !c.now.Before(w.ready) {
			running++
		}
	}
	desired, _, err = c.backend.Tasks(ctx)
	return desired, running, err
}

func (c *cloud) rise() {
	due := c.rises
	c.rises = nil
	for _, r := range due {
		if c.now.Before(r.at) {
			c.rises = append(c.rises, r)
			continue
		}
		change, err := c.fleet.Rise(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		c.followed(change, r.left)
	}
}

func (c *cloud) followed(change fleet.Change, left int) {
	if change.Rose() && left > 0 {
		c.rises = append(c.rises, simRise{c.now.Add(fleet.RiseEvery), left - 1})
	}
}

// follow acts like ECS: it starts workers, and stops workers that are not busy.
func (c *cloud) follow() {
	for len(c.workers) < c.desired {
		c.workers = append(c.workers, &simWorker{ready: c.now.Add(c.startTime), busy: map[job.Lane]time.Time{}})
	}
	for i := 0; i < len(c.workers) && len(c.workers) > c.desired; {
		if c.workers[i].isBusy(c.now) {
			i++
			continue
		}
		c.workers = append(c.workers[:i], c.workers[i+1:]...)
	}
}

func (c *cloud) work() {
	for _, lane := range []job.Lane{job.VideoLane, job.ImageLane} {
		leased := 0
		for _, w := range c.workers {
			if c.now.Before(w.ready) || c.now.Before(w.busy[lane]) || len(c.waiting[lane]) == 0 {
				continue
			}
			next := c.waiting[lane][0]
			c.waiting[lane] = c.waiting[lane][1:]
			next.started, w.busy[lane] = c.now, c.now.Add(next.takes)
		}
		for _, w := range c.workers {
			if c.now.Before(w.busy[lane]) {
				leased++
			}
		}
		past := append(c.lengths[lane], len(c.waiting[lane])+leased)
		c.lengths[lane] = past[max(0, len(past)-60):]
	}
}

func (c *cloud) pass(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); c.now = c.now.Add(time.Second) {
		if !c.now.Before(c.nextCheck) {
			change, err := c.fleet.Check(c.t.Context())
			if err != nil {
				c.t.Fatal(err)
			}
			c.followed(change, fleet.MostRises)
			c.nextCheck = c.now.Truncate(time.Minute).Add(time.Minute + time.Duration(c.random.IntN(60))*time.Second)
		}
		c.rise()
		c.follow()
		c.work()
		if len(c.workers) > c.fleet.Rules.Max && c.desired > c.fleet.Rules.Max {
			c.t.Fatalf("%v: %d workers are wanted", c.now, c.desired)
		}
	}
}

// accept accepts a job. wakes is how many of its wake events arrive.
func (c *cloud) accept(lane job.Lane, takes time.Duration, wakes int) *simJob {
	j := &simJob{lane: lane, accepted: c.now, takes: takes}
	c.jobs, c.waiting[lane] = append(c.jobs, j), append(c.waiting[lane], j)
	for range wakes {
		c.wake()
	}
	return j
}

func (c *cloud) wake() {
	change, err := c.fleet.Wake(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	c.followed(change, fleet.MostRises)
}

// quiet checks that the workers stop after all work is done.
func (c *cloud) quiet() {
	c.t.Helper()
	c.pass(c.startTime + c.fleet.Rules.Idle + 5*time.Minute)
	if c.desired != c.fleet.Rules.Min || len(c.workers) != c.fleet.Rules.Min {
		c.t.Errorf("%d workers remain, %d are wanted", len(c.workers), c.desired)
	}
}

func (c *cloud) startsWithin(limit time.Duration) {
	c.t.Helper()
	for i, j := range c.jobs {
		switch {
		case j.started.IsZero():
			c.t.Fatalf("job %d of %s never started", i, j.lane)
		case j.started.Sub(j.accepted) > limit:
			c.t.Errorf("job %d of %s started after %v", i, j.lane, j.started.Sub(j.accepted))
		}
	}
}

// A job's deadline is ten minutes after it is accepted (docs/contract/jobs.md#deadline). This
// leaves two minutes for the edit.
const mustStart = 8 * time.Minute

// Preview workers run on Fargate. Engine servers run on instances, which take longer to start.
var fleets = map[string]struct {
	rules     fleet.Rules
	startTime time.Duration
}{
	"preview": {rules, 100 * time.Second},
	"gpu":     {fleet.Rules{Max: 2, Backlog: 2, Idle: 15 * time.Minute}, 6 * time.Minute},
}

func TestFirstJobAfterSilenceStartsInTime(t *testing.T) {
	for name, kind := range fleets {
		for _, silence := range []time.Duration{10 * time.Minute, 6 * time.Hour, 72 * time.Hour} {
			for _, lane := range []job.Lane{job.VideoLane, job.ImageLane} {
				for wakes, heard := range []string{"no wake arrives", "one wake arrives", "both wakes arrive"} {
					t.Run(fmt.Sprintf("%s/%v/%s/%s", name, silence, lane, heard), func(t *testing.T) {
						c := newCloud(t, kind.rules, kind.startTime, uint64(silence)+uint64(wakes))
						c.accept(lane, time.Minute, 1)
						c.quiet()
						c.pass(silence)
						c.accept(lane, time.Minute, wakes)
						c.pass(mustStart + time.Minute)
						c.startsWithin(mustStart + time.Minute)
						c.quiet()
						if wakes > 0 {
							c.startsWithin(mustStart)
						}
						if c.changes > 4 {
							t.Errorf("the number changed %d times for two jobs", c.changes)
						}
					})
				}
			}
		}
	}
}

// While no worker runs, calls to the synchronous image route are rejected and nothing is queued.
// Only wake events show that there is work.
func TestWakesStartWorkerForSynchronousImages(t *testing.T) {
	for name, kind := range fleets {
		for _, silence := range []time.Duration{10 * time.Minute, 6 * time.Hour, 72 * time.Hour} {
			t.Run(fmt.Sprint(name, silence), func(t *testing.T) {
				c := newCloud(t, kind.rules, kind.startTime, uint64(silence))
				c.pass(silence)
				asked := c.now
				for warm := false; !warm; {
					c.wake()
					c.pass(45 * time.Second)
					for _, w := range c.workers {
						warm = warm || !c.now.Before(w.ready)
					}
					if waited := c.now.Sub(asked); waited > kind.startTime+2*time.Minute {
						t.Fatalf("no worker started within %v", waited)
					}
				}
				c.accept(job.ImageLane, 3*time.Second, 0)
				c.pass(time.Minute)
				c.startsWithin(time.Minute)
				c.quiet()
			})
		}
	}
}

// A fleet learns how long its workers take to start, and notices when they no longer start.
func TestAdmissionLearnsStartTimes(t *testing.T) {
	for name, kind := range fleets {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, kind.rules, kind.startTime, 10)
			for range 12 {
				c.accept(job.VideoLane, 10*time.Second, 1)
				c.pass(kind.startTime + time.Minute)
				if seen := c.state.Fleet; seen.Stuck(c.now) || seen.Running > seen.Wanted {
					t.Fatalf("while a worker starts: %+v", seen)
				}
				c.quiet()
			}
			if seen := c.state.Fleet.Starts(); seen < kind.startTime || seen > kind.startTime+2*time.Minute {
				t.Errorf("workers take %v to start, %v was learned", kind.startTime, seen)
			}
			if seen := c.state.Fleet; seen.Running != 0 || seen.Wanted != 0 || seen.Stuck(c.now) {
				t.Errorf("asleep: %+v", seen)
			}
			// From here on, workers do not start in time.
			c.startTime = time.Hour
			for range 8 {
				c.accept(job.VideoLane, 10*time.Second, 1)
			}
			c.pass(2 * time.Minute)
			if seen := c.state.Fleet; seen.Stuck(c.now) || seen.Wanted == 0 {
				t.Errorf("soon after workers were wanted: %+v", seen)
			}
			c.pass(kind.startTime + 3*time.Minute)
			if seen := c.state.Fleet; !seen.Stuck(c.now) {
				t.Errorf("long after: %+v at %v", seen, c.now)
			}
		})
	}
}

func TestSleepingFleetWritesNothing(t *testing.T) {
	c := newCloud(t, rules, 100*time.Second, 11)
	c.pass(5 * time.Minute)
	saw := c.saw
	c.pass(6 * time.Hour)
	if c.saw != saw {
		t.Errorf("%d writes in six hours without work", c.saw-saw)
	}
}
