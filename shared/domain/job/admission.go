package job

import (
	"time"

	"cutroom/shared/domain/fault"
)

// Backlog is the work queued ahead of a new job on a lane.
type Backlog struct {
	// Jobs is how many jobs of the lane are pending or processing, of all
	// accounts; AccountJobs is how many of them are the account's own, and AccountOpen how
	// many that has on all lanes.
	Jobs, AccountJobs, AccountOpen int
	// Running is how many jobs of the lane workers have. Spare is how many places the lane
	// has beyond its workers; an account never has more places than there are workers. Where
	// Spare is 0, Running may be unknown.
	Running, Spare int
	// RunTime is the mean time from start to end of the jobs that ended most
	// recently, 0 if none has.
	RunTime time.Duration
	// Others is how many other accounts had jobs among those that completed most recently, within
	// OthersFor.
	Others int
	// Fleet is what is known of the workers where they come and go.
	Fleet Fleet
}

// Fleet is what was seen of workers that come and go. The zero value tells nothing: then
// all workers are taken to be there.
type Fleet struct {
	// SeenAt is when somebody last looked.
	SeenAt time.Time
	// Running is how many there were, Wanted how many there were to be, and Most how many
	// there may be at the most.
	Running, Wanted, Most int
	// WantedSince is when Wanted last rose, zero if workers were lost since.
	WantedSince time.Time
	// ShortSince is since when fewer run than are wanted and none has come; zero while as
	// many run.
	ShortSince time.Time
	// StartTime is how long workers took to start, as was learned; 0 if nothing was.
	StartTime time.Duration
}

const (
	// firstRunTime is assumed as the mean run time until a job has ended. It is
	// long on purpose: a job refused without need can be tried again, but a job
	// accepted in vain costs ten minutes.
	firstRunTime = 10 * time.Second
	// servable is the part of MaxAge that a backlog may fill; the rest allows
	// for a run that takes longer than the mean or is repeated.
	servable = MaxAge * 3 / 4
	// OthersFor is how long an account is taken to come again after a job of it has completed.
	// With the ten minutes of a job, one of a hundred jobs more ended late in the simulation of
	// scarce workers. Without a bound, those that left count for as long as nothing completes,
	// and who sends jobs that fail could keep it so.
	OthersFor = time.Hour
	// accountShare is the part of a servable backlog that one account may fill
	// while it alone has work queued, so that another's first job is still
	// accepted: the last quarter is for accounts that have less.
	accountShare = 0.75

	// firstStartTime is assumed until it was seen how long workers take to start, which
	// is a minute for a container and several for a machine with a GPU.
	firstStartTime = 5 * time.Minute
	// startMargin is for how long beyond the time of a start a worker is still expected,
	// and leastPatience how long one is expected at the least.
	startMargin, leastPatience = 2 * time.Minute, 3 * time.Minute
	// seenFor is how long what was seen of workers holds. Who looks at them says so more
	// often; that there are none and none are wanted holds until a wake.
	seenFor = 15 * time.Minute
	// noWorkerRetry is when to try again where nobody works: workers are looked at once a
	// minute.
	noWorkerRetry = 30 * time.Second
)

// OthersOf returns how many of the accounts of some jobs are others than one, each counted once.
func OthersOf(accounts []string, account string) int {
	others := map[string]bool{}
	for _, of := range accounts {
		others[of] = of != account
	}
	delete(others, account)
	return len(others)
}

// Starts returns how long a worker takes to start, as it was learned or is assumed.
func (f Fleet) Starts() time.Duration {
	if f.StartTime <= 0 {
		return firstStartTime
	}
	return f.StartTime
}

// Stuck reports whether workers have been wanted for so long, without one having come, that
// none is to be expected: hardware may be scarce.
func (f Fleet) Stuck(now time.Time) bool {
	return !f.ShortSince.IsZero() && now.Sub(f.ShortSince) >= max(f.Starts()+startMargin, leastPatience)
}

// expect returns how many jobs of a lane are worked on at once, and how many more will be
// after start, of workers that all together take so many.
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

// part returns the part of a servable backlog that the account may fill, where so many jobs are
// worked on at once. While others keep all workers busy it takes turns with them, and what they
// send later overtakes what it has waiting: it may have what its turns will serve. Who they will
// be is told by whose jobs were served last, as most come again.
func (b Backlog) part(atOnce int) float64 {
	idle := 1 - float64(b.Jobs-b.AccountJobs)/float64(max(atOnce, 1))
	return min(accountShare, max(1/float64(b.Others+1), idle))
}

// placeFor reports whether a spare place is free for the account, so that its job need not
// wait, however long the jobs of others take.
func (b Backlog) placeFor(workers int) bool {
	return b.Spare > 0 && b.AccountJobs < workers && b.Running < workers+b.Spare
}

// Admit decides whether one more job can be expected to be served in time by the lane's
// workers, of which there are so many at the most (docs/contract/jobs.md#admission).
//
// Errors: fault.Limited with the time after which there should be room.
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

// AdmitWaiting is Admit for a job whose caller waits so long for its end, 0 for as long as it
// takes. As accounts take turns, of another's many jobs only those count whose turn comes first.
// The turn has to come within three quarters of the wait, as those before may take longer than
// the mean, and the job to end within all of it.
//
// Errors: as Admit.
func (b Backlog) AdmitWaiting(wait time.Duration, workers int, now time.Time) error {
	if err := b.Admit(workers, now); err != nil || wait <= 0 || b.placeFor(workers) {
		return err
	}
	running, _, _ := b.Fleet.expect(max(workers, 1), now)
	ahead := min(b.Jobs, (b.AccountJobs+1)*(b.Others+1)-1)
	turn := time.Duration(ahead) * b.RunTime / time.Duration(max(running, 1))
	// Until a job has ended nobody knows, and a caller hears within its wait.
	if b.Jobs < running || ahead == 0 || turn < wait*3/4 && turn+b.RunTime < wait {
		return nil
	}
	return queueFull(b.RunTime, running)
}

// queueFull refuses a job of a lane with so many workers.
func queueFull(runTime time.Duration, running int) error {
	refusal := fault.New(fault.Limited, "The queue is full: a job accepted now might not finish in time. Try again later.")
	refusal.RetryAfter = max(time.Second, runTime/time.Duration(max(running, 1)))
	if running == 0 {
		refusal.RetryAfter = max(refusal.RetryAfter, noWorkerRetry)
	}
	return refusal
}
