// Package sim runs the service's own code in simulated time, with simulated load and failures.
//
// One goroutine advances from event to event. Clients, workers, queues and failures are events. They call the
// domain and the AWS adapters, which run on package fakeaws. All results depend only on the seed.
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

type Config struct {
	Seed uint64
	// Jobs is the number of jobs per day. With OneAccount, one account submits all of them.
	Jobs       int
	OneAccount bool
	// Window is the simulated length of the busiest time. WarmUp comes before it and is not counted. A Window of
	// 0 simulates an entire day. In both cases, simulated time continues without load until the jobs have ended.
	Window, WarmUp time.Duration
	// Failures kills a quarter of the workers, loses a zone, and simulates a deployment.
	Failures bool
	// Strays is the fraction of messages delivered twice. The same fraction is delivered late.
	Strays float64
}

type World struct {
	Config
	clock      *clock
	random     *rand.Rand
	cloud      *fakeaws.Cloud
	accounts   []*account
	shares     []float64
	service    *service
	containers *containers
	rules      fleet.Rules
	// epochs holds the leases of the realtime instances.
	epochs []string
	ids    int

	// closed ends the load. stopped ends all repeating events.
	closed, stopped bool
	// clients holds the clients that are still polling their job, by job id. retrying is the number
	// of clients that will submit again.
	clients  map[string]*client
	retrying int
	open     map[string]int
	// workers lists the workers, including some that have stopped. alive is the number of running
	// workers, and made is the number ever started.
	workers     []*worker
	alive, made int
	// idle holds workers with a free slot, by lane.
	idle     map[job.Lane][]*worker
	matching map[job.Lane]bool
	// free holds the idle function instances. The most recently used instance is last.
	free    map[string][]*instance
	lambdas int

	counts, warmUp *Counts
	peaks          Peaks
}

func Run(c Config) (*Result, error) {
	w, err := newWorld(c)
	if err != nil {
		return nil, err
	}
	return w.run(), nil
}

func newWorld(c Config) (*World, error) {
	at := time.Duration(0)
	if c.Window > 0 {
		at = peakAt - c.WarmUp
	}
	w := &World{
		Config: c, clock: &clock{now: begin.Add(at)}, random: rand.New(rand.NewPCG(c.Seed, c.Seed)),
		accounts: newAccounts(c.Jobs, c.OneAccount), clients: map[string]*client{}, open: map[string]int{},
		idle: map[job.Lane][]*worker{}, matching: map[job.Lane]bool{}, free: map[string][]*instance{},
		counts: newCounts(), warmUp: newCounts(),
	}
	w.cloud = fakeaws.New(w.clock, w.random, dynamo.Tables())
	w.cloud.DynamoDB.Limit(true)
	w.cloud.SQS.Twice, w.cloud.SQS.Late, w.cloud.SQS.Lateness = c.Strays, c.Strays, lateness
	w.containers = &containers{World: w}
	w.rules = fleet.Rules{Max: w.workersFor(1.3), Backlog: 2, Idle: 10 * time.Minute}
	if err := w.newService(); err != nil {
		return nil, err
	}
	for _, lane := range lanes {
		w.cloud.SQS.Queue(queueURLs[lane]).Ready = func() { w.match(lane) }
	}
	w.cloud.StepFn.Started = func() {
		w.peaks.Starts.add(w.clock.Now())
		w.clock.After(time.Second, w.wake)
	}
	if err := w.startRealtime(); err != nil {
		return nil, err
	}
	if c.Window > 0 { // at the busiest time, the fleet has already scaled up
		w.containers.desired = w.workersFor(1.1)
		for range w.containers.desired {
			w.startWorker()
		}
	}
	return w, nil
}

// workersFor returns the number of workers needed at the busiest time, multiplied by `factor`.
func (w *World) workersFor(factor float64) int {
	video := rate(float64(w.Jobs)*videos, peakAt) * meanVideoWork.Seconds()
	image := rate(float64(w.Jobs)*(1-videos), peakAt) * meanImageWork.Seconds()
	return max(4, int(math.Ceil(factor*max(video, image))))
}

// run runs the load, and then continues simulated time until every accepted job should have ended.
func (w *World) run() *Result {
	jobs, length := float64(w.Jobs), day
	w.checkFleet()
	w.arrivals(jobs*videos, w.video)
	w.arrivals(jobs*(1-videos)/imageBurst, w.images)
	w.arrivals(jobs*completionsEach, w.completion)
	w.arrivals(jobs*sessionsEach, w.session)
	w.arrivals(jobs*uploadsEach, w.upload)
	w.arrivals(jobs*listsEach, w.list)
	if w.Window > 0 {
		length = w.Window
		w.clock.run(w.clock.Now().Add(w.WarmUp))
		w.warmUp = w.counts
	}
	w.counts = newCounts()
	w.peaks = Peaks{Lambdas: w.lambdas, FewestWorkers: w.alive}
	w.containers.notePeak()
	w.cloud.Reset()
	w.plan(length)
	w.clock.run(w.clock.Now().Add(length))
	w.closed = true
	r := &Result{
		Config: w.Config, Peaks: w.peaks, Hottest: w.cloud.DynamoDB.Hottest(), Tables: w.cloud.DynamoDB.Totals(),
	}
	for until := w.clock.Now().Add(drainTime); w.clock.Now().Before(until) && len(w.clients)+w.retrying > 0; {
		w.clock.run(w.clock.Now().Add(time.Second))
	}
	w.stopped = true
	r.Counts = *w.counts
	for _, waits := range r.Waits {
		slices.Sort(waits)
	}
	for _, c := range []*Counts{w.warmUp, w.counts} {
		r.Lost += c.Done["jobs"] - c.Ended
		r.Doubled += c.doubled
		r.Unbilled += c.Completed
	}
	r.Unbilled -= w.billed()
	return r
}

// drainTime is longer than any job may take, including the events after its end.
const drainTime = 15 * time.Minute

// billed returns the number of jobs in all accounts' usage.
func (w *World) billed() (jobs int) {
	for _, a := range w.accounts {
		totals, err := w.service.usage.Totals(context.Background(), a.name, usage.DayOf(begin),
			usage.DayOf(w.clock.Now()), usage.All)
		if err != nil {
			panic(err) // the store is in memory, and nothing else is using it now
		}
		for _, t := range totals {
			jobs += int(t.JobsCompleted)
		}
	}
	return jobs
}

func (w *World) checkFleet() {
	if w.stopped {
		return
	}
	change, _ := w.service.fleet.Check(context.Background()) // the next check tries again
	w.follow(change, fleet.MostRises)
	w.clock.After(time.Minute, w.checkFleet)
}

// follow repeats a check that raised the number of workers, like fleet.Fleet's Follow.
func (w *World) follow(change fleet.Change, left int) {
	if !change.Rose() || left == 0 {
		return
	}
	done := w.occupy()
	w.clock.After(fleet.RiseEvery, func() {
		done()
		if w.stopped {
			return
		}
		change, _ := w.service.fleet.Rise(context.Background()) // the next check tries again
		w.follow(change, left-1)
	})
}

// wake simulates the function that runs when an execution starts.
func (w *World) wake() {
	w.clock.After(wakeTime, w.occupy())
	change, _ := w.service.fleet.Wake(context.Background()) // the next check tries again
	w.follow(change, fleet.MostRises)
}
