package worker

import (
	"context"
	"sync"

	"cutroom/shared/domain/job"
	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/panics"
)

// lane runs one queue's jobs. It has as many receivers as slots.
//
// A slot requests a job when it is free or, with Prefetch, shortly before. The first free slot takes the next job
// received, so that no slot is idle while a job waits.
type lane struct {
	worker    *Worker
	name      job.Lane
	admission *admission
	requests  chan struct{}
	received  chan *lease
}

func newLane(w *Worker, name job.Lane, slots int, admission *admission) *lane {
	return &lane{
		worker: w, name: name, admission: admission,
		requests: make(chan struct{}, slots), received: make(chan *lease),
	}
}

func (l *lane) work(ctx context.Context) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	// Store one result at a time, so that finished results do not pile up.
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
			defer lease.stop() // otherwise a panic would leave the lease being extended forever
			panics.Run(lease.logger, "job", func() { l.handle(lease, slot) })
		})
		<-freed
	}
}

// newRequest returns a function that requests one job, no matter how often it is called.
func (l *lane) newRequest() func() {
	return sync.OnceFunc(func() { l.requests <- struct{}{} }) // the channel has capacity for all slots
}

type slot struct {
	requestNext func()
	// free makes the slot available for the next job, possibly while the result is still being stored.
	free func()
	// storing contains an element while one of the slot's results is being stored.
	storing chan struct{}
}

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

// receiveOne takes a job from the queue and reports whether a slot took it.
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

// take waits for admission and takes a job. It returns nil if the context or the round ends. It
// also returns nil, after a pause, if the queue fails.
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
