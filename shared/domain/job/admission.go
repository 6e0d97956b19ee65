package job

import (
	"time"

	"cutroom/shared/domain/fault"
)

// Backlog is the work queued ahead of a new job on a lane.
type Backlog struct {
	// Jobs counts the pending and processing jobs of the lane. AccountJobs is the account's part of
	// them. AccountOpen counts the account's open jobs on all lanes.
	Jobs, AccountJobs, AccountOpen int
	// Running is how many jobs of the lane workers have. Spare is how many places the lane has
	// beyond its workers, which only accounts without a running job get. If Spare is 0,
	// Running may be unknown.
	Running, Spare int
	// RunTime is the mean run time of the jobs that ended most recently, or 0.
	RunTime time.Duration
	// Others is how many other accounts completed jobs most recently, within OthersFor.
	Others int
	// Fleet is the state of workers that start and stop with the load.
	Fleet Fleet
}

// Fleet is the state of workers that start and stop with the load. The zero value means that all
// workers run.
type Fleet struct {
	// SeenAt is the time of the last look.
	SeenAt time.Time
	// Running is the number of running workers, Wanted the desired and Most the largest number.
	Running, Wanted, Most int
	// WantedSince is when Wanted last rose, zero if workers were lost since.
	WantedSince time.Time
	// ShortSince is the time since which fewer workers run than are wanted and none has started, or zero.
	ShortSince time.Time
	// StartTime is how long workers took to start, or 0 if unknown.
	StartTime time.Duration
}

const (
	// firstRunTime is the assumed mean run time until a job has ended. It is long on purpose: a
	// refused job can be tried again, but a job accepted in vain costs ten minutes.
	firstRunTime = 10 * time.Second
	// servable is the part of MaxAge that a backlog may fill. The rest allows for slow or repeated runs.
	servable = MaxAge * 3 / 4
	// OthersFor is how long an account is expected to come back after a completed job. With ten
	// minutes instead, one more job in a hundred ended late in the simulation of scarce workers. If
	// there were no limit, accounts that have left would count until other jobs complete, so a
	// sender of failing jobs could keep them counted.
	OthersFor = time.Hour
	// accountShare is the part of a servable backlog that one account may fill while no other has
	// queued work. The last quarter is for accounts with fewer jobs.
	accountShare = 0.75

	// firstStartTime is the assumed start time of workers until it is known: a minute for a
	// container, several for a machine with a GPU.
	firstStartTime = 5 * time.Minute
	// startMargin is how long beyond its start time a worker is still expected. leastPatience is
	// the least time that one is expected.
	startMargin, leastPatience = 2 * time.Minute, 3 * time.Minute
	// seenFor is how long the state of workers is valid. Looks renew it more often. A state without
	// wanted workers stays valid until a wake.
	seenFor = 15 * time.Minute
	// noWorkerRetry is the Retry-After without workers: checks run once a minute.
	noWorkerRetry = 30 * time.Second
)

// OthersOf returns the number of different accounts other than the given one.
func OthersOf(accounts []string, account string) int {
	others := map[string]bool{}
	for _, of := range accounts {
		others[of] = of != account
	}
	delete(others, account)
	return len(others)
}

// Starts returns the known or assumed start time of a worker.
func (f Fleet) Starts() time.Duration {
	if f.StartTime <= 0 {
		return firstStartTime
	}
	return f.StartTime
}

// Stuck reports whether wanted workers have not started for so long that none is expected. Hardware may
// be scarce.
func (f Fleet) Stuck(now time.Time) bool {
	return !f.ShortSince.IsZero() && now.Sub(f.ShortSince) >= max(f.Starts()+startMargin, leastPatience)
}

// expect returns how many jobs of a lane run now, and how many more will run after start. workers
// is the capacity of all workers together.
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

// part returns the fraction of a servable backlog that the account may fill, for a number of
// concurrent jobs. While others keep all workers busy, the account takes turns with them, and their
// later jobs overtake its waiting ones. So it may have as many jobs as its turns will serve.
// Accounts served recently are expected to come again.
func (b Backlog) part(atOnce int) float64 {
	idle := 1 - float64(b.Jobs-b.AccountJobs)/float64(max(atOnce, 1))
	return min(accountShare, max(1/float64(b.Others+1), idle))
}

// placeFor reports whether a spare place is free for the account, so that its job need not wait for others.
func (b Backlog) placeFor(workers int) bool {
	free := b.Running < workers && b.AccountJobs < workers
	return b.Spare > 0 && (free || b.AccountJobs == 0 && b.Running < workers+b.Spare)
}

// Admit decides whether one more job can be expected to end in time on at most this many workers
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
	room := running*int(servable/runTime) + more*int(max(servable-start, 0)/runTime)
	room = max(room, all) // a lane with idle workers is never full
	share := max(int(float64(room)*b.part(all)), min(room, 1))
	if b.Jobs < room && (b.AccountJobs < share || b.Jobs < all) {
		return nil
	}
	return queueFull(runTime, running)
}

// AdmitWaiting is Admit for a job whose caller waits up to wait for its end; 0 means any time.
// Accounts take turns, so only jobs of others with an earlier turn count. The turn must come within
// three quarters of the wait, because earlier jobs may be slower than the mean, and the job must
// end within all of it.
//
// Errors: as Admit.
func (b Backlog) AdmitWaiting(wait time.Duration, workers int, now time.Time) error {
	if err := b.Admit(workers, now); err != nil || wait <= 0 || b.placeFor(workers) {
		return err
	}
	running, _, _ := b.Fleet.expect(max(workers, 1), now)
	ahead := min(b.Jobs, (b.AccountJobs+1)*(b.Others+1)-1)
	turn := time.Duration(ahead) * b.RunTime / time.Duration(max(running, 1))
	// Before a first job has ended, run times are unknown, and the caller gets an answer within its
	// wait anyway.
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
