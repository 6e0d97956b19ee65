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
	// atOnce limits the concurrent attempts. atOnceOfAccount limits the concurrent attempts of one account.
	atOnce          = 32
	atOnceOfAccount = 4
	// An account is slow for slowFor after an attempt that took longer than slowAfter. atOnceOfSlow limits the
	// concurrent attempts of all slow accounts combined.
	atOnceOfSlow = atOnce / 2
	slowAfter    = time.Second
	slowFor      = 10 * time.Minute
	// seenAtOnce limits how many due attempts are read at once. It is large because slow accounts
	// may be listed first.
	seenAtOnce = 1024
)

// Queue contains the scheduled attempts on one machine. In AWS, a message queue is used instead.
type Queue interface {
	// Due returns due attempts, earliest first, up to the limit. ofAccount is the maximum number of attempts per
	// account.
	Due(ctx context.Context, now time.Time, ofAccount, limit int) ([]ScheduledAttempt, error)
}

type Loop struct {
	Queue     Queue
	Deliverer *Deliverer
	Now       func() time.Time
	Logger    *slog.Logger
}

// Run makes attempts until the context ends. Interrupted attempts are repeated after the next start.
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
				failed[e.event] = true // retried at the next tick rather than immediately
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

// start starts due attempts. busy maps the events of attempts in progress to accounts. Such an attempt remains due
// until it is recorded, and counts toward its account's limit.
func (l *Loop) start(ctx context.Context, running *sync.WaitGroup, busy map[string]string, slow map[string]time.Time,
	ended chan<- end) error {
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
