package worker

import (
	"math"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

const (
	// prefetchAhead is how long before the estimated end of a run its slot asks
	// for the next job. A job that is held for a busy slot is kept from the idle
	// ones of other workers, so it is as late as it can be: this is what fetching
	// the largest upload and expanding a prompt take. A run that tells no
	// progress lets its slot ask when the engine is done.
	prefetchAhead = 20 * time.Second
	// prefetchLimit bounds what is fetched ahead for one job, in bytes. A job
	// with larger inputs is held all the same, and fetches them in its run.
	prefetchLimit = 1 << 30
)

// prefetch holds a job until a slot takes it, and fetches its inputs meanwhile. It
// reports whether a slot took it. No run of the job is started here, so whatever
// goes wrong costs it none: what cannot be fetched is left to the run.
func (l *lane) prefetch(h *held) (handed bool) {
	select {
	case l.received <- h: // a slot is idle
		return true
	default:
	}
	j, err := l.Runs.Get(h.ctx, h.delivery.JobID())
	switch {
	case h.ctx.Err() != nil:
		l.giveBack(h, 0)
		return false
	case err == nil && j.Status.Terminal(), fault.Is(err, fault.NotFound):
		l.drop(h)
		return false
	case err != nil:
		h.logger.Warn("look at a job to fetch its inputs ahead", "error", err)
		j.Deadline = l.Now().Add(job.MaxAge)
	case inputBytes(j) <= prefetchLimit:
		h.prefetched = l.prepare(submitted(h.ctx, j), j)
	}
	l.loads[l.name].prefetched(1)
	defer l.loads[l.name].prefetched(-1)
	overdue := time.NewTimer(j.Deadline.Sub(l.Now()) - deadlineSlack)
	defer overdue.Stop()
	select {
	case l.received <- h:
		return true
	case <-h.ctx.Done():
		l.giveBack(h, 0)
	case <-overdue.C:
		l.fail(h, "", job.TimeoutFailure())
	}
	return false
}

func inputBytes(j job.Job) (size int64) {
	for _, input := range j.Request.Inputs {
		size += input.Size
	}
	return size
}

// outlook asks for the next job when the run that it follows is estimated to be
// near its end.
type outlook struct {
	begun time.Time
	mu    sync.Mutex
	timer *time.Timer
}

// newOutlook begins with the engine's work; the caller stops it.
func newOutlook(ask func()) *outlook {
	return &outlook{begun: time.Now(), timer: time.AfterFunc(math.MaxInt64, ask)}
}

// report takes the run to go on as fast as it did so far.
func (o *outlook) report(fraction float64) {
	if fraction <= 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	rest := float64(time.Since(o.begun)) * (1/min(fraction, 1) - 1)
	o.timer.Reset(max(0, time.Duration(min(rest, math.MaxInt64/2))-prefetchAhead))
}

func (o *outlook) stop() { o.timer.Stop() }
