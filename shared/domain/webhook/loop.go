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
	// atOnce limits all concurrent attempts. atOnceOfAccount limits one account.
	atOnce          = 32
	atOnceOfAccount = 4
	// A slow account had an attempt within slowFor that took longer than slowAfter. atOnceOfSlow
	// limits all slow accounts together.
	atOnceOfSlow = atOnce / 2
	slowAfter    = time.Second
	slowFor      = 10 * time.Minute
	// seenAtOnce limits the due attempts in one read, which may list slow accounts first.
	seenAtOnce = 1024
)

// Queue contains the scheduled attempts on one machine. AWS uses a message queue instead.
type Queue interface {
	// Due returns due attempts, earliest first, at most ofAccount per account.
	Due(ctx context.Context, now time.Time, ofAccount, limit int) ([]ScheduledAttempt, error)
}

type Loop struct {
	Queue     Queue
	Deliverer *Deliverer
	Now       func() time.Time
	Logger    *slog.Logger
}

// Run makes attempts until the context ends. Interrupted attempts are repeated after the next
// startup.
func (l *Loop) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	ticker := time.NewTicker(loopEvery)
	defer ticker.Stop()
	ended := make(chan end, atOnce)
	busy, slow := map[string]string{}, map[string]time.Time{}
	failed := map[string]bool{}
	for {
		if err := l.start(ctx, &running, busy, slow, ended); err != nil && ctx.Err() == nil {
			l.Logger.Error("cannot read due webhooks", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case e := <-ended:
			if e.took > slowAfter {
				slow[busy[e.event]] = time.Now()
			}
			if e.failed {
				failed[e.event] = true // retried at the next tick, not immediately
			} else {
				delete(busy, e.event)
			}
		case <-ticker.C:
			maps.DeleteFunc(busy, func(event, _ string) bool { return failed[event] })
			maps.DeleteFunc(slow, func(_ string, since time.Time) bool { return time.Since(since) > slowFor })
			clear(failed)
		}
	}
}

// failed means that the attempt could not be made or recorded.
type end struct {
	event  string
	took   time.Duration
	failed bool
}

// start starts the due attempts. busy maps running attempts to accounts. They stay due until they
// are recorded, so they count for their accounts.
func (l *Loop) start(
	ctx context.Context, running *sync.WaitGroup, busy map[string]string, slow map[string]time.Time, ended chan<- end,
) error {
	if len(busy) >= atOnce {
		return nil
	}
	due, err := l.Queue.Due(ctx, l.Now(), atOnceOfAccount, seenAtOnce)
	if err != nil {
		return err
	}
	isSlow := func(account string) bool { return !slow[account].IsZero() }
	slowOnes := 0
	for _, account := range busy {
		if isSlow(account) {
			slowOnes++
		}
	}
	for _, scheduled := range due {
		limited := isSlow(scheduled.Account)
		if busy[scheduled.Event] != "" || len(busy) >= atOnce || limited && slowOnes >= atOnceOfSlow {
			continue
		}
		busy[scheduled.Event] = scheduled.Account
		if limited {
			slowOnes++
		}
		running.Go(func() {
			began := time.Now()
			_, _, err := l.Deliverer.Deliver(ctx, scheduled)
			if err != nil && ctx.Err() == nil {
				l.Logger.Error("cannot deliver a webhook", "event", scheduled.Event, "error", err)
			}
			ended <- end{scheduled.Event, time.Since(began), err != nil}
		})
	}
	return nil
}
