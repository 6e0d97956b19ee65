package job

import (
	"time"

	"cutroom/shared/domain/fault"
)

// Backlog is the work ahead of a new job on a lane.
type Backlog struct {
	// Jobs counts the lane's pending and processing jobs, and AccountJobs the account's among them.
	// AccountOpen counts the account's open jobs on all lanes.
	Jobs, AccountJobs, AccountOpen int
	// Running is the number of the lane's jobs that workers process, and may be unknown if Spare is 0.
	// Spare is the number of extra places for accounts without a running job.
	Running, Spare int
	// RunTime is the mean of the latest completed jobs, or 0 if unknown.
	RunTime time.Duration
	// Others counts other accounts that completed jobs within OthersFor.
	Others int
	Fleet  Fleet
}

// Fleet is the state of workers that start and stop with the load. The zero value means that all
// workers run.
type Fleet struct {
	SeenAt time.Time // the last check
	// Running, Wanted and Most are numbers of workers.
	Running, Wanted, Most int
	// WantedSince is when Wanted last rose. It is zero if workers were lost since then.
	WantedSince time.Time
	// ShortSince is when Running fell below Wanted without any start since, or zero.
	ShortSince time.Time
	StartTime  time.Duration // as observed, or 0
}

const (
	// firstRunTime is assumed until a first job has completed. It is long on purpose: a client can
	// retry a rejected job, but loses ten minutes with a job that is accepted in vain.
	firstRunTime = 10 * time.Second
	// servable is the fraction of MaxAge that a backlog may fill. The rest allows for slow runs.
	servable = MaxAge * 3 / 4
	// OthersFor is the time in which an account that completed a job is expected to send another. In
	// the simulation of scarce workers, one percent more jobs ended late with a value of ten minutes.
	// If there were no limit, a client could keep absent accounts counted by sending failing jobs.
	OthersFor = time.Hour
	// accountFraction is the fraction of a backlog that one account may fill while no other account
	// has queued jobs. The last quarter is for accounts with fewer jobs.
	accountFraction = 0.75

	// firstStartTime is assumed until the start time is known. A container takes a minute, and a
	// machine with a GPU takes several.
	firstStartTime = 5 * time.Minute
	// startMargin is added to the start time before a worker counts as missing. minStartWait limits
	// the sum.
	startMargin, minStartWait = 2 * time.Minute, 3 * time.Minute
	// seenFor is the time for which the state of workers is valid. Each check renews it. A state
	// without wanted workers stays valid until the next wake-up.
	seenFor = 15 * time.Minute
	// noWorkerRetry is the Retry-After without workers. Checks run once a minute.
	noWorkerRetry = 30 * time.Second
)

func (b *Backlog) SetRuns(runs []RunTime, account string, now time.Time) {
	var all time.Duration
	others := map[string]bool{}
	for _, run := range runs {
		all += run.Took
		if run.Account != "" && run.Account != account && now.Sub(run.Ended) < OthersFor {
			others[run.Account] = true
		}
	}
	b.RunTime, b.Others = all/time.Duration(max(len(runs), 1)), len(others)
}

func (f Fleet) Starts() time.Duration {
	if f.StartTime <= 0 {
		return firstStartTime
	}
	return f.StartTime
}

// Stuck reports whether wanted workers have been missing for so long that none is expected.
func (f Fleet) Stuck(now time.Time) bool {
	return !f.ShortSince.IsZero() && now.Sub(f.ShortSince) >= max(f.Starts()+startMargin, minStartWait)
}

// expect returns how many jobs of a lane run now, and how many more will run after start.
func (f Fleet) expect(workers int, now time.Time) (running, more int, start time.Duration) {
	someone := f.Running > 0 || f.Wanted > 0
	if f.SeenAt.IsZero() || someone && now.Sub(f.SeenAt) >= seenFor {
		return workers, 0, 0
	}
	each := max(1, workers/max(f.Most, 1))
	running = min(f.Running*each, workers)
	if !f.Stuck(now) {
		more = workers - running
	}
	return running, more, f.Starts()
}

// fraction returns the fraction of a servable backlog that the account may fill. While other
// accounts keep all workers busy, their later jobs overtake its waiting jobs, so it may queue as
// many jobs as its turns can serve.
func (b Backlog) fraction(atOnce int) float64 {
	idle := 1 - float64(b.Jobs-b.AccountJobs)/float64(max(atOnce, 1))
	return min(accountFraction, max(1/float64(b.Others+1), idle))
}

// placeFor reports whether the account's job can use a spare place immediately.
func (b Backlog) placeFor(workers int) bool {
	free := b.Running < workers && b.AccountJobs < workers
	return b.Spare > 0 && (free || b.AccountJobs == 0 && b.Running < workers+b.Spare)
}

// Admit decides whether one more job is expected to end in time with this number of workers
// (docs/contract/jobs.md#admission).
//
// Errors: fault.Limited with RetryAfter.
func (b Backlog) Admit(workers int, now time.Time) error {
	if b.placeFor(workers) {
		return nil
	}
	runTime := b.RunTime
	if runTime <= 0 {
		runTime = firstRunTime
	}
	running, more, start := b.Fleet.expect(max(workers, 1), now)
	all := running + more
	capacity := running*int(servable/runTime) + more*int(max(servable-start, 0)/runTime)
	capacity = max(capacity, all) // a lane with idle workers is never full
	quota := max(int(float64(capacity)*b.fraction(all)), min(capacity, 1))
	if b.Jobs < capacity && (b.AccountJobs < quota || b.Jobs < all) {
		return nil
	}
	return queueFull(runTime, running)
}

// AdmitWaiting is like Admit, for a job whose caller waits up to wait for it to end. A wait of 0 is
// unlimited. Only other accounts' jobs with an earlier turn count. The turn must arrive within
// three quarters of the wait, since earlier jobs may be slower than the mean. The job must end
// within the wait.
//
// Errors: as Admit.
func (b Backlog) AdmitWaiting(wait time.Duration, workers int, now time.Time) error {
	if err := b.Admit(workers, now); err != nil || wait <= 0 || b.placeFor(workers) {
		return err
	}
	running, _, _ := b.Fleet.expect(max(workers, 1), now)
	ahead := min(b.Jobs, (b.AccountJobs+1)*(b.Others+1)-1)
	turn := time.Duration(ahead) * b.RunTime / time.Duration(max(running, 1))
	// Until a first job has completed, run times are unknown.
	if b.Jobs < running || ahead == 0 || turn < wait*3/4 && turn+b.RunTime < wait {
		return nil
	}
	return queueFull(b.RunTime, running)
}

func queueFull(runTime time.Duration, running int) error {
	refusal := fault.New(fault.Limited, "The queue is full: a job accepted now might not finish in time. Try again later.")
	refusal.RetryAfter = max(time.Second, runTime/time.Duration(max(running, 1)))
	if running == 0 {
		refusal.RetryAfter = max(refusal.RetryAfter, noWorkerRetry)
	}
	return refusal
}
