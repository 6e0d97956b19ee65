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
	"time"

	"cutroom/bench/scale/cloud"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
)

// Config is what a simulation is made of.
type Config struct {
	Seed uint64
	// Jobs is how many there are in a day.
	Jobs int
	// Window is how long the load lasts at the busiest time of the day, after WarmUp, which
	// is not counted. Without it, it lasts the whole day.
	Window, WarmUp time.Duration
	Faults         Faults
}

// World is one simulation.
type World struct {
	Config
	clock      *Clock
	random     *rand.Rand
	cloud      *cloud.Cloud
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
	fleetOf       []*worker
	workersMade   int
	idle          map[job.Lane][]slot
	matching      map[job.Lane]bool
	lambdas       map[string]int
	lambdasNow    int
	sessionLimits map[string]int
	// open counts the jobs of accounts that their clients wait for.
	open map[string]int

	count   *count
	most    most
	waits   map[string][]time.Duration
	ends    map[string]ends
	minutes []Minute
}

// Run runs a simulation.
//
// Errors: the service cannot be put together.
func Run(c Config) (*Result, error) {
	w, err := newWorld(c)
	if err != nil {
		return nil, err
	}
	w.plan(c.Faults)
	w.watch()
	w.look()
	w.arrivals(float64(c.Jobs)*videos, w.video)
	w.arrivals(float64(c.Jobs)*(1-videos)/imageBurst, w.images)
	w.arrivals(float64(c.Jobs)*completionsEach, w.completion)
	w.arrivals(float64(c.Jobs)*sessionsEach, w.realtime.connect)
	if c.Window == 0 {
		w.reset()
		w.clock.Run(begin.Add(day))
		w.closed = true
		result := w.measure(day)
		w.drain(result)
		return result, nil
	}
	w.clock.Run(w.clock.Now().Add(c.WarmUp))
	w.reset()
	w.clock.Run(w.clock.Now().Add(c.Window))
	w.closed, w.stopped = true, true
	return w.measure(c.Window), nil
}

func newWorld(c Config) (*World, error) {
	at := time.Duration(0)
	if c.Window > 0 {
		at = peakAt - c.WarmUp
	}
	w := &World{
		Config: c, clock: NewClock(at), random: rand.New(rand.NewPCG(c.Seed, c.Seed)), accounts: newAccounts(c.Jobs),
		jobs: map[string]*tracked{}, idle: map[job.Lane][]slot{}, matching: map[job.Lane]bool{}, lambdas: map[string]int{},
		sessionLimits: map[string]int{}, open: map[string]int{},
	}
	w.forget()
	w.chooser = newChooser(w.accounts)
	w.cloud = cloud.New(w.clock, w.random, dynamo.Tables())
	w.containers = &containers{world: w}
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
	_, _ = w.service.fleet.Look(context.Background()) // the next look repeats it
	w.clock.After(time.Minute, w.look)
}

// wake is the function that an execution's start calls.
func (w *World) wake() {
	w.count.wakes++
	w.busy("wake", lambdaTime["wake"])
	_, _ = w.service.fleet.Wake(context.Background()) // the look repeats it
}

// forget begins the counts of the simulation itself.
func (w *World) forget() {
	w.count = &count{refused: map[string]int{}, sessionsRefused: map[string]int{}, requests: map[string]int{}}
	w.most = most{byFunction: map[string]int{}, lambdas: w.lambdasNow}
	w.waits, w.ends, w.minutes = map[string][]time.Duration{}, map[string]ends{}, nil
}

// reset forgets what was counted so far, by the simulation and by the cloud.
func (w *World) reset() {
	w.forget()
	w.cloud.Reset()
	w.containers.reads = rates{}
}

// drain lets the jobs of the day end, and notes those that are not told of.
func (w *World) drain(r *Result) {
	w.clock.Run(w.clock.Now().Add(15 * time.Minute))
	w.stopped = true
	r.Accepted, r.Ended = w.count.accepted, w.count.ended
	r.Lost = w.count.accepted - w.count.ended
	r.Doubled = w.count.doubled
	r.Completed = w.count.completedJobs
	r.BilledJobs = w.billed()
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
