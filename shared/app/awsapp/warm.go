package awsapp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/job"
)

// Workers reports whether a lane has workers that take a job at once.
type Workers interface {
	Warm(ctx context.Context, lane job.Lane) (bool, error)
}

// Waker starts what scales the workers up from zero.
type Waker interface {
	Start(ctx context.Context) error
}

// wakeEvery is the shortest time between two wakes: a second one would only find the
// workers starting.
const wakeEvery = 10 * time.Second

// Wake returns a function for Warm of api.Config where workers scale to zero: if they
// are not running, it wakes them and reports false, so that the caller retries
// later. With a nil waker somebody else starts them.
func Wake(workers Workers, waker Waker, now func() time.Time,
	logger *slog.Logger) func(context.Context, job.Lane) (bool, error) {
	w := &wake{waker: waker, now: now}
	return func(ctx context.Context, lane job.Lane) (bool, error) {
		warm, err := workers.Warm(ctx, lane)
		if err != nil || warm || waker == nil {
			return warm, err
		}
		if err := w.start(ctx); err != nil {
			// The caller retries in any case, which wakes them again.
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
