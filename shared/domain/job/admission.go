package job

import (
	"time"

	"cutroom/shared/domain/fault"
)

// Backlog is the work that a new job on a lane must wait for.
type Backlog struct {
	// Jobs counts the lane's pending and processing jobs. AccountJobs counts the account's jobs among them.
	// AccountOpen counts the account's open jobs on all lanes.
	Jobs, AccountJobs, AccountOpen int
	// Low and AccountLow count the pending jobs with low priority, which Jobs and AccountJobs include.
	Low, AccountLow int
	// Running is the number of the lane's jobs that are being processed. It may be unknown if Spare
	// is 0. Spare is the number of extra slots for brief jobs of accounts without a running job.
	Running, Spare int
	// Brief means that the new job is brief.
	Brief bool
	// RunTime is the mean time that recently completed jobs took without runs in spare slots, or 0 if unknown.
	RunTime time.Duration
	// Others counts the other accounts that completed a job within OthersFor.
	Others int
	Fleet  Fleet
}

// Fleet is the state of workers that start and stop with the load. The zero value means that all workers are running.
type Fleet struct {
	SeenAt                time.Time // when the last check ran
	Running, Wanted, Most int
	// WantedSince is when Wanted last rose. It is zero if workers have been lost since.
	WantedSince time.Time
	// ShortSince is when Running fell below Wanted or, if later, when a worker last started. It is zero if no worker
	// is missing.
	ShortSince time.Time
	StartTime  time.Duration // as observed, or 0
}

const (
	// firstRunTime is assumed until a job has completed. It is deliberately long, because a client can retry a
	// rejected job, but an accepted job that cannot finish in time costs the client ten minutes.
	firstRunTime = 10 * time.Second
	// servable is the part of MaxAge that a backlog may fill. The rest allows for slow runs.
	servable = MaxAge * 3 / 4
	// OthersFor is how long after completing a job an account is expected to send another job. In the simulation of
	// scarce workers, a value of ten minutes made one percent more jobs miss their deadline. Without any limit,
	// absent accounts would stay in the count while all new jobs fail.
	OthersFor = time.Hour
	// accountFraction is the fraction of a backlog that one account may fill while no other account
	// has queued jobs. The remaining quarter is for accounts with fewer jobs.
	accountFraction = 0.75

	// firstStartTime is assumed until a start has been observed. A container takes a minute to
	// start, and a machine with a GPU takes several.
	firstStartTime = 5 * time.Minute
	// A worker is considered missing when it is late by startMargin, but never before minStartWait.
	startMargin, minStartWait = 2 * time.Minute, 3 * time.Minute
	// seenFor is how long the workers' state remains valid after a check. A state with no wanted
	// workers remains valid until the next wake.
	seenFor = 15 * time.Minute
	// noWorkerRetry is the Retry-After if there are no workers. Checks run once a minute.
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

// Stuck reports whether wanted workers have been missing for so long that they are no longer expected.
func (f Fleet) Stuck(now time.Time) bool {
	return !f.ShortSince.IsZero() && now.Sub(f.ShortSince) >= max(f.Starts()+startMargin, minStartWait)
}

// expect returns how many of a lane's jobs can run now, how many more can run later, and the time until then.
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

// fraction returns the fraction of a servable backlog that the account may fill. If other accounts
// keep all workers busy, their later jobs overtake this account's waiting jobs, so the account may
// queue only as many jobs as its turns can serve.
func (b Backlog) fraction(atOnce int) float64 {
	idle := 1 - float64(b.Jobs-b.AccountJobs)/float64(max(atOnce, 1))
	return min(accountFraction, max(1/float64(b.Others+1), idle))
}

// placeFor reports whether the account's job can start immediately, perhaps in a spare slot.
func (b Backlog) placeFor(workers int) bool {
	free := b.Running < workers && b.AccountJobs < workers
	return b.Spare > 0 && (free || b.Brief && b.AccountJobs == 0 && b.Running < workers+b.Spare)
}

// Admit decides whether one more job is expected to end in time with the given number of workers
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
	capacity = max(capacity, all) // a lane with idle workers is never considered full
	quota := max(int(float64(capacity)*b.fraction(all)), min(capacity, 1))
	if b.Jobs < capacity && (b.AccountJobs < quota || b.Jobs < all) {
		return nil
	}
	return queueFull(runTime, running)
}

// AdmitWaiting is like Admit, but for a caller that stops waiting for the job after the given time (0 means never).
// Other accounts' jobs count only if their turn is earlier. The job's turn must be due within three quarters of that
// time, because the jobs before it may be slower than the mean. The job must also end within that time.
//
// Errors: as for Admit.
func (b Backlog) AdmitWaiting(wait time.Duration, workers int, now time.Time) error {
	if err := b.Admit(workers, now); err != nil || wait <= 0 || b.placeFor(workers) {
		return err
	}
	running, _, _ := b.Fleet.expect(max(workers, 1), now)
	ahead := min(b.Jobs, (b.AccountJobs+1)*(b.Others+1)-1)
	turn := time.Duration(ahead) * b.RunTime / time.Duration(max(running, 1))
	run := b.RunTime * time.Duration(max(running, b.Running, 1)) / time.Duration(max(running, 1))
	// Run times are unknown until a job has completed.
	if b.Jobs < running || ahead == 0 || turn < wait*3/4 && turn+run < wait {
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
