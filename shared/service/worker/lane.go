package worker

import (
	"context"
	"sync"

	"cutroom/shared/domain/job"
	"cutroom/shared/platform/contain"
)

// lane is the work of one lane: slots, in which jobs run, and as many receivers,
// which feed them.
//
// A slot asks for each of its jobs, and a receiver takes one off the queue for
// each that was asked for. Without Prefetch a slot asks when it is free; with it,
// when it is about to be. The jobs in hand then belong to the lane and not to the
// slot that asked: whichever slot is free first takes one, so that no slot is
// idle while a job waits for another.
type lane struct {
	*Worker
	name job.Lane
	gate *gate
	// wanted holds what slots have asked for: at most one job for each.
	wanted chan struct{}
	// received hands jobs to slots.
	received chan *held
}

func newLane(w *Worker, name job.Lane, slots int, gate *gate) *lane {
	return &lane{Worker: w, name: name, gate: gate, wanted: make(chan struct{}, slots), received: make(chan *held)}
}

// work is the life of one slot.
func (l *lane) work(ctx context.Context) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	// One result is stored at a time: else they would pile up behind a slow store.
	storing := make(chan struct{}, 1)
	ask := l.newRequest()
	for {
		ask()
		var h *held
		select {
		case <-ctx.Done():
			return
		case h = <-l.received:
		}
		ask = l.newRequest()
		free := make(chan struct{})
		turn := turn{ask: ask, leave: sync.OnceFunc(func() { close(free) }), storing: storing}
		jobs.Go(func() {
			defer turn.leave()
			defer h.letGo() // whatever happened: a lease that is kept is nobody's
			contain.Run(h.logger, "job", func() { l.handle(h, turn) })
		})
		<-free
	}
}

// newRequest gives what asks for one job, however often it is called.
func (l *lane) newRequest() (ask func()) {
	return sync.OnceFunc(func() { l.wanted <- struct{}{} }) // has room for all slots
}

// turn is a job's use of a slot.
type turn struct {
	// ask asks for the slot's next job.
	ask func()
	// leave lets the next job have the slot, also while this one is still being
	// stored. The end of the job does so too.
	leave func()
	// storing is held by the job of the slot whose result is being stored.
	storing chan struct{}
}

// receive is the life of one receiver.
func (l *lane) receive(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wanted:
		}
		for handed := false; !handed && ctx.Err() == nil; {
			if !contain.Run(l.Logger, "receiver", func() { handed = l.receiveOne(ctx) }) {
				pause(ctx, troublePause)
			}
		}
	}
}

// receiveOne takes a job off the queue and hands it to a slot, and reports
// whether it did.
func (l *lane) receiveOne(ctx context.Context) (handed bool) {
	round, leave, err := l.gate.enter(ctx)
	if err != nil {
		return false // the context has ended
	}
	leave = sync.OnceFunc(leave)
	defer leave()
	delivery, err := l.Queue.Receive(round, l.name, l.Lease)
	if err != nil {
		leave()
		if round.Err() == nil {
			l.Logger.Error("receive a job", "lane", l.name, "error", err)
			pause(ctx, troublePause)
		}
		return false
	}
	h := l.hold(ctx, delivery)
	leave()
	defer func() {
		if !handed {
			h.letGo()
			l.hands.remove(h)
		}
	}()
	if err := l.engineHealth(h.ctx); err != nil && h.ctx.Err() == nil {
		h.logger.Warn("the engine takes no runs: the job is left to others", "error", err)
		l.giveBack(h, troublePause)
		l.awaitEngine(ctx)
		return false
	}
	if l.Prefetch {
		return l.prefetch(h)
	}
	select {
	case l.received <- h:
		return true
	case <-h.ctx.Done():
		l.giveBack(h, 0)
		return false
	}
}

// engineHealth returns nil when the engine takes runs.
func (l *lane) engineHealth(ctx context.Context) error {
	if l.EngineHealth == nil {
		return nil
	}
	return l.EngineHealth(ctx)
}

// awaitEngine waits until the engine takes runs.
func (l *lane) awaitEngine(ctx context.Context) {
	for pause(ctx, troublePause) {
		if l.engineHealth(ctx) == nil {
			l.Logger.Info("the engine takes runs", "lane", l.name)
			return
		}
	}
}
