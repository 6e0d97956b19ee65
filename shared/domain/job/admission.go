package job

import (
	"time"

	"cutroom/shared/domain/fault"
)

// Backlog is the work queued ahead of a new job on a lane.
type Backlog struct {
	// Jobs is how many jobs of the lane are pending or processing, of all
	// accounts; AccountJobs is how many of them are the account's own.
	Jobs, AccountJobs int
	// RunTime is the mean time from start to end of the jobs that ended most
	// recently, 0 if none has.
	RunTime time.Duration
}

const (
	// firstRunTime is assumed as the mean run time until a job has ended. It is
	// long on purpose: a job refused without need can be tried again, but a job
	// accepted in vain costs ten minutes.
	firstRunTime = 10 * time.Second
	// servable is the part of MaxAge that a backlog may fill; the rest allows
	// for a run that takes longer than the mean or is repeated.
	servable = MaxAge * 3 / 4
	// accountShare is the part of a servable backlog that one account may fill
	// while it alone has work queued, so that another's first job is still
	// accepted: the last quarter is for accounts that have less.
	accountShare = 0.75
)

// Admit decides whether one more job can be expected to be served in time by
// the lane's workers (docs/contract/jobs.md#admission).
//
// Errors: fault.Limited with the time after which there should be room.
func (b Backlog) Admit(workers int) error {
	runTime := b.RunTime
	if runTime <= 0 {
		runTime = firstRunTime
	}
	room := int(servable / runTime * time.Duration(max(workers, 1)))
	room = max(room, max(workers, 1)) // a lane with idle workers is never full
	share := max(int(float64(room)*accountShare), 1)
	if b.Jobs < room && (b.AccountJobs < share || b.Jobs < max(workers, 1)) {
		return nil
	}
	refusal := fault.New(fault.Limited, "The queue is full: a job accepted now might not finish in time. Try again later.")
	refusal.RetryAfter = max(time.Second, runTime/time.Duration(max(workers, 1)))
	return refusal
}
