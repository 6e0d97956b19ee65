package webhook

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

const (
	loopEvery = time.Second
	// atOnce limits concurrent attempts. atOnceOfAccount limits those of one account, so that its
	// slow receivers do not delay other accounts.
	atOnce          = 32
	atOnceOfAccount = 4
)

// Queue holds the scheduled attempts of all events on one machine. AWS uses a message queue instead.
type Queue interface {
	// Due returns due attempts, earliest first: at most limit, and at most ofAccount per account.
	Due(ctx context.Context, now time.Time, ofAccount, limit int) ([]ScheduledAttempt, error)
}

// Loop makes the attempts of one machine when they are due.
type Loop struct {
	Queue     Queue
	Deliverer *Deliverer
	Now       func() time.Time
	Logger    *slog.Logger
}

// Run makes attempts until the context ends. That interrupts running attempts, which are repeated
// after the next startup.
func (l *Loop) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	ticker := time.NewTicker(loopEvery)
	defer ticker.Stop()
	ended := make(chan end, atOnce)
	busy, failed := map[string]bool{}, map[string]bool{}
	for {
		if err := l.start(ctx, &running, busy, ended); err != nil && ctx.Err() == nil {
			l.Logger.Error("cannot read due webhooks", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case e := <-ended:
			if e.failed {
				failed[e.event] = true // retried at the next tick, not immediately
			} else {
				delete(busy, e.event)
			}
		case <-ticker.C:
			maps.DeleteFunc(busy, func(event string, _ bool) bool { return failed[event] })
			clear(failed)
		}
	}
}

// end describes the end of an attempt. failed means that it could not be made or recorded.
type end struct {
	event  string
	failed bool
}

// start starts the due attempts. Running attempts stay due until they are recorded, so they count
// for their accounts.
func (l *Loop) start(ctx context.Context, running *sync.WaitGroup, busy map[string]bool, ended chan<- end) error {
	if len(busy) >= atOnce {
		return nil
	}
	due, err := l.Queue.Due(ctx, l.Now(), atOnceOfAccount, 2*atOnce)
	if err != nil {
		return err
	}
	for _, scheduled := range due {
		if busy[scheduled.Event] || len(busy) >= atOnce {
			continue
		}
		busy[scheduled.Event] = true
		running.Go(func() {
			_, _, err := l.Deliverer.Deliver(ctx, scheduled)
			if err != nil && ctx.Err() == nil {
				l.Logger.Error("cannot deliver a webhook", "event", scheduled.Event, "error", err)
			}
			ended <- end{scheduled.Event, err != nil}
		})
	}
	return nil
}
