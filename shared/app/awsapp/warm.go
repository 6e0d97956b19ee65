package awsapp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/job"
)

// Workers tells whether a lane has workers that take a job at once.
type Workers interface {
	Warm(ctx context.Context, lane job.Lane) (bool, error)
}

// Waker starts what raises the workers from none.
type Waker interface {
	Start(ctx context.Context) error
}

// wakeEvery is how soon after a wake the next one is asked for: each would only
// find the workers starting.
const wakeEvery = 10 * time.Second

// Wake gives what api.Config's Warm is where workers sleep: it wakes them when
// somebody needs them, and lets the caller come back. Without a waker, which is
// nil, others start the workers.
func Wake(workers Workers, waker Waker, now func() time.Time, logger *slog.Logger) func(context.Context, job.Lane) (bool, error) {
	w := &wake{waker: waker, now: now}
	return func(ctx context.Context, lane job.Lane) (bool, error) {
		warm, err := workers.Warm(ctx, lane)
		if err != nil || warm || waker == nil {
			return warm, err
		}
		if err := w.start(ctx); err != nil {
			// The caller is sent away in any case, and the next one wakes.
			logger.ErrorContext(ctx, "wake the workers", "error", err)
		}
		return false, nil
	}
}

// wake starts a waker at most once in wakeEvery.
type wake struct {
	waker Waker
	now   func() time.Time

	mu   sync.Mutex
	next time.Time
}

func (w *wake) start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now().Before(w.next) {
		return nil
	}
	if err := w.waker.Start(ctx); err != nil {
		return err
	}
	w.next = w.now().Add(wakeEvery)
	return nil
}
