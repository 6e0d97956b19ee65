package worker

import (
	"context"
	"sync"

	"cutroom/shared/domain/job"
	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/panics"
)

// lane runs the jobs of one queue. It has slots, in which jobs run, and the same number of receivers.
//
// A slot requests each of its jobs, and a receiver takes a job from the queue for each request.
// Without Prefetch, a slot requests a job when it is free; with Prefetch, when it will soon be
// free. A received job belongs to the lane. The first free slot takes it, so that no slot is idle
// while a job waits.
type lane struct {
	worker    *Worker
	name      job.Lane
	admission *admission
	// requests holds the slots' requests, at most one per slot.
	requests chan struct{}
	// received hands jobs to slots.
	received chan *lease
}

func newLane(w *Worker, name job.Lane, slots int, admission *admission) *lane {
	return &lane{
		worker: w, name: name, admission: admission,
		requests: make(chan struct{}, slots), received: make(chan *lease),
	}
}

// work runs jobs in one slot, one after another.
func (l *lane) work(ctx context.Context) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	// Store one result at a time; otherwise results would accumulate if the store is slow.
	storing := make(chan struct{}, 1)
	requestNext := l.newRequest()
	for {
		requestNext()
		var lease *lease
		select {
		case <-ctx.Done():
			return
		case lease = <-l.received:
		}
		requestNext = l.newRequest()
		freed := make(chan struct{})
		slot := slot{requestNext: requestNext, free: sync.OnceFunc(func() { close(freed) }), storing: storing}
		jobs.Go(func() {
			defer slot.free()
			defer lease.stop() // otherwise the lease could be extended forever
			panics.Run(lease.logger, "job", func() { l.handle(lease, slot) })
		})
		<-freed
	}
}

// newRequest returns a function that requests one job, even if it is called repeatedly.
func (l *lane) newRequest() func() {
	return sync.OnceFunc(func() { l.requests <- struct{}{} }) // the channel has capacity for all slots
}

// slot is a job's use of one of its lane's slots.
type slot struct {
	requestNext func()
	// free releases the slot for the next job, even while the result is still being stored. The end of
	// the job also releases it.
	free func()
	// storing is held while the result of one of the slot's jobs is being stored.
	storing chan struct{}
}

// receive serves requests, one after another.
func (l *lane) receive(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.requests:
		}
		for handed := false; !handed && ctx.Err() == nil; {
			if !panics.Run(l.worker.config.Logger, "receiver", func() { handed = l.receiveOne(ctx) }) {
				clock.Wait(ctx, troublePause)
			}
		}
	}
}

// receiveOne takes a job from the queue and passes it to a slot. It reports whether it succeeded.
func (l *lane) receiveOne(ctx context.Context) (handed bool) {
	lease := l.take(ctx)
	if lease == nil {
		return false
	}
	defer func() {
		if !handed {
			lease.stop()
			l.worker.inflight.remove(lease)
		}
	}()
	if err := l.engineHealth(lease.ctx); err != nil && lease.ctx.Err() == nil {
		lease.logger.Warn("the engine accepts no runs; leaving the job to other workers", "error", err)
		l.nack(lease, troublePause)
		l.awaitEngine(ctx)
		return false
	}
	if l.worker.config.Prefetch {
		return l.prefetch(lease)
	}
	select {
	case l.received <- lease:
		return true
	case <-lease.ctx.Done():
		l.nack(lease, 0)
		return false
	}
}

// take waits for admission and takes a job from the queue. It returns nil when the context or the
// round has ended. If the queue fails, it returns nil after a pause.
func (l *lane) take(ctx context.Context) *lease {
	round, leave, err := l.admission.enter(ctx)
	if err != nil {
		return nil // the context has ended
	}
	leave = sync.OnceFunc(leave)
	defer leave()
	delivery, err := l.worker.config.Queue.Receive(round, l.name, l.worker.config.Lease)
	if err != nil {
		leave()
		if round.Err() == nil {
			l.worker.config.Logger.Error("cannot receive a job", "lane", l.name, "error", err)
			clock.Wait(ctx, troublePause)
		}
		return nil
	}
	return l.worker.hold(ctx, delivery)
}

// engineHealth returns nil if the engine accepts runs.
func (l *lane) engineHealth(ctx context.Context) error {
	if l.worker.config.EngineHealth == nil {
		return nil
	}
	return l.worker.config.EngineHealth(ctx)
}

func (l *lane) awaitEngine(ctx context.Context) {
	for clock.Wait(ctx, troublePause) {
		if l.engineHealth(ctx) == nil {
			l.worker.config.Logger.Info("the engine accepts runs again", "lane", l.name)
			return
		}
	}
}
