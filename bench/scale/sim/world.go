// Package sim runs the service's own code over simulated time, load and failures.
//
// One goroutine goes from event to event. Clients, workers, queues and failures are events;
// what they ask of the service is done by the domain and the adapters of AWS themselves,
// over the services of package cloud. What follows from the seed is all that happens.
package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/fakeaws"
)

// Config is what a simulation is made of.
type Config struct {
	Seed uint64
	// Jobs is how many there are in a day.
	Jobs int
	// Window is how long what is counted lasts at the busiest time of the day, after WarmUp,
	// which is not. Without it, it lasts the whole day. In both cases the load stops then, the
	// peaks stand, and time goes on until the jobs have ended.
	Window, WarmUp time.Duration
	Faults         Faults
}

// World is one simulation.
type World struct {
	Config
	clock      *Clock
	random     *rand.Rand
	cloud      *fakeaws.Cloud
	accounts   []*Account
	chooser    *chooser
	service    *service
	containers *containers
	realtime   *realtime
	rules      fleet.Rules
	ids        int
	nonces     int

	// closed says that no more load comes, stopped that nothing repeats itself any more.
	closed, stopped bool
	// jobs are those that clients know, by id.
	jobs map[string]*tracked
	// fleetOf are the workers, idle their free slots.
	fleetOf []*worker
	// aliveNow are the workers that run, workersMade all that ever did.
	aliveNow, workersMade int
	idle                  map[job.Lane][]slot
	matching              map[job.Lane]bool
	lambdas               map[string]int
	lambdasNow            int
	sessionLimits         map[string]int
	// trying are the clients that will try again to submit their jobs.
	trying int
	// free are the instances of functions that serve no call, in the order in which they
	// became free.
	free  map[string][]*instance
	files int
	// open counts the jobs of accounts that their clients wait for.
	open map[string]int

	// count is of what is asked for now, warmUp of what was before the window.
	count, warmUp *count
	most          most
	faults        []Fault
	minutes       []Minute
}

// Run runs a simulation.
//
// Errors: the service cannot be put together.
func Run(c Config) (*Result, error) {
	w, err := newWorld(c)
	if err != nil {
		return nil, err
	}
	return w.run(), nil
}

// run runs the simulation of a world that was made.
func (w *World) run() *Result {
	c := w.Config
	w.bear(c.Faults)
	w.watch()
	w.look()
	w.arrivals(float64(c.Jobs)*videos, w.video)
	w.arrivals(float64(c.Jobs)*(1-videos)/imageBurst, w.images)
	w.arrivals(float64(c.Jobs)*completionsEach, w.completion)
	w.arrivals(float64(c.Jobs)*sessionsEach, w.realtime.connect)
	w.arrivals(float64(c.Jobs)*uploadsEach, w.upload)
	w.arrivals(float64(c.Jobs)*fileListsEach, w.listFiles)
	w.arrivals(float64(c.Jobs)*jobListsEach, w.listJobs)
	length := day
	if c.Window > 0 {
		length = c.Window
		w.clock.Run(w.clock.Now().Add(c.WarmUp))
		w.warmUp = w.count
	}
	w.reset()
	w.plan(c.Faults, length)
	w.clock.Run(w.clock.Now().Add(length))
	w.closed = true
	result := w.measure(length)
	w.drain(result)
	return result
}

func newWorld(c Config) (*World, error) {
	at := time.Duration(0)
	if c.Window > 0 {
		at = peakAt - c.WarmUp
	}
	w := &World{
		Config: c, clock: NewClock(at), random: rand.New(rand.NewPCG(c.Seed, c.Seed)), accounts: newAccounts(c.Jobs),
		jobs: map[string]*tracked{}, idle: map[job.Lane][]slot{}, matching: map[job.Lane]bool{}, lambdas: map[string]int{},
		sessionLimits: map[string]int{}, open: map[string]int{}, count: newCount(), warmUp: newCount(),
		free: map[string][]*instance{},
	}
	w.chooser = newChooser(w.accounts)
	w.cloud = fakeaws.New(w.clock, w.random, dynamo.Tables())
	w.containers = &containers{world: w}
	w.reset()
	w.rules = fleet.Rules{Max: w.workersFor(1.3), Backlog: 2, Idle: 10 * time.Minute}
	var err error
	if w.service, err = w.newService(); err != nil {
		return nil, err
	}
	for _, lane := range lanes {
		w.cloud.SQS.Queue(queueURLs[lane]).Ready = func() { w.match(lane) }
	}
	w.cloud.StepFn.Started = func() {
		w.count.starts.add(w.clock.Now(), 1)
		w.clock.After(time.Second, w.wake)
	}
	w.realtime = &realtime{World: w}
	if err := w.realtime.start(); err != nil {
		return nil, err
	}
	if c.Window > 0 {
		// At the busiest time the fleet has grown already.
		w.containers.desired = w.workersFor(1.1)
		for range w.containers.desired {
			w.startWorker()
		}
	}
	return w, nil
}

// workersFor returns how many workers the peak needs, with some to spare.
func (w *World) workersFor(spare float64) int {
	video := rate(float64(w.Jobs)*videos, peakAt) * meanVideoWork.Seconds()
	image := rate(float64(w.Jobs)*(1-videos), peakAt) * meanImageWork.Seconds()
	return max(4, int(math.Ceil(spare*max(video, image))))
}

// look is the function that looks at the fleet once a minute.
func (w *World) look() {
	if w.stopped {
		return
	}
	look, _ := w.service.fleet.Look(context.Background()) // the next look repeats it
	w.follow(look, fleet.MostRises)
	w.clock.After(time.Minute, w.look)
}

// follow looks again after a look that has raised the number of workers, as Follow does.
func (w *World) follow(look fleet.Look, left int) {
	if !look.Rose() || left == 0 {
		return
	}
	done := w.occupy("wake")
	w.clock.After(fleet.RiseEvery, func() {
		done()
		if w.stopped {
			return
		}
		look, _ := w.service.fleet.Rise(context.Background()) // the next look repeats it
		w.follow(look, left-1)
	})
}

// wake is the function that an execution's start calls.
func (w *World) wake() {
	w.busy("wake", wakeTime)
	look, _ := w.service.fleet.Wake(context.Background()) // the look repeats it
	w.follow(look, fleet.MostRises)
}

// reset forgets what was counted so far, by the simulation and by the cloud. What belongs to
// jobs goes on to be counted with those that were asked for when they were.
func (w *World) reset() {
	w.count = newCount()
	w.most = most{byFunction: map[string]int{}, made: map[string]int{}, lambdas: w.lambdasNow, tasks: w.tasks()}
	w.cloud.Reset()
	w.containers.reads = rates{}
}

// drainTime is longer than any job may take, and than what comes after its end.
const drainTime = 15 * time.Minute

// drain lets time go on without load until every accepted job has ended, or should have, and
// notes what became of them.
func (w *World) drain(r *Result) {
	for until := w.clock.Now().Add(drainTime); w.clock.Now().Before(until); {
		w.clock.Run(w.clock.Now().Add(time.Second))
		if len(w.jobs) == 0 && w.trying == 0 {
			break
		}
	}
	w.stopped = true
	c := w.count
	r.Asked, r.Accepted, r.GaveUp, r.Refused = c.asked, c.accepted, c.gaveUp, c.refused
	r.Ended, r.Completed, r.Runs, r.LostRuns = c.ended, c.completedJobs, c.runs, c.lost
	r.Waits, r.InTime, r.Minutes, r.Faults = c.waits, map[string]float64{}, w.minutes, w.faults
	for _, waits := range r.Waits {
		slices.Sort(waits)
	}
	for account, e := range c.ends {
		r.InTime[account] = float64(e.completed) / float64(e.all)
	}
	for _, one := range []*count{w.warmUp, w.count} {
		r.Lost += one.accepted - one.ended
		r.Doubled += one.doubled
		r.Unbilled += one.completedJobs
	}
	r.Unbilled -= w.billed()
}

// billed returns how many jobs are billed to all accounts, by their usage.
func (w *World) billed() (jobs int) {
	for _, a := range w.accounts {
		totals, err := w.service.usage.Totals(context.Background(), a.Name, usage.DayOf(begin), usage.DayOf(w.clock.Now()))
		if err != nil {
			panic(err) // the store is in memory, and has quiet now
		}
		for _, t := range totals {
			jobs += int(t.JobsCompleted)
		}
	}
	return jobs
}
