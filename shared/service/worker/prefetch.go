package worker

import (
	"math"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

const (
	// A slot requests its next job this long before the estimated end of its run. This is about the time to fetch the
	// largest upload. It should not be longer, because other workers cannot take a job that is waiting here. If a run
	// reports no progress, its slot requests the next job only when the engine is done.
	prefetchAhead = 20 * time.Second
	// prefetchLimit limits how many bytes are prefetched for a job. The run fetches any larger inputs.
	prefetchLimit = 1 << 30
)

// prefetch fetches a job's inputs until a slot takes the job, and reports whether a slot took it.
// The run fetches any inputs that are missing.
func (l *lane) prefetch(lease *lease) (handed bool) {
	select {
	case l.received <- lease: // a slot is idle
		return true
	default:
	}
	j, err := l.worker.config.Runs.Get(lease.ctx, lease.delivery.JobID())
	switch {
	case lease.ctx.Err() != nil:
		l.nack(lease, 0)
		return false
	case err == nil && j.Status.Terminal(), fault.Is(err, fault.NotFound):
		l.drop(lease)
		return false
	case err != nil:
		lease.logger.Warn("cannot read a job to prefetch its inputs", "error", err)
		j.Deadline = l.worker.config.Now().Add(job.MaxAge)
	case inputBytes(j) <= prefetchLimit:
		lease.prefetched = l.worker.prepare(submitted(lease.ctx, j), j)
	}
	l.worker.loads[l.name].prefetched(1)
	defer l.worker.loads[l.name].prefetched(-1)
	left := j.Deadline.Sub(l.worker.config.Now())
	if j.RunDeadline().Equal(j.Deadline) {
		left -= deadlineSlack
	}
	overdue := time.NewTimer(left)
	defer overdue.Stop()
	select {
	case l.received <- lease:
		return true
	case <-lease.ctx.Done():
		l.nack(lease, 0)
	case <-overdue.C:
		l.fail(lease, j, "", j.LateFailure())
	}
	return false
}

func inputBytes(j job.Job) (size int64) {
	for _, input := range j.Request.Inputs {
		size += input.Size
	}
	return size
}

type estimate struct {
	begun time.Time
	mu    sync.Mutex
	timer *time.Timer
}

// newEstimate starts estimating when the run will end. Call it when the engine starts, and call
// stop when the engine is done.
func newEstimate(ask func()) *estimate {
	return &estimate{begun: time.Now(), timer: time.AfterFunc(math.MaxInt64, ask)}
}

// report assumes that the run continues at its average speed.
func (e *estimate) report(fraction float64) {
	if fraction <= 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	rest := float64(time.Since(e.begun)) * (1/min(fraction, 1) - 1)
	e.timer.Reset(max(0, time.Duration(min(rest, math.MaxInt64/2))-prefetchAhead))
}

func (e *estimate) stop() { e.timer.Stop() }
