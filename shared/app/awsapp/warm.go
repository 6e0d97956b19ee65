package awsapp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/lambdainvoke"
	"cutroom/shared/domain/job"
)

// warmUp returns the check for workers of a lane, which starts the function wake if none runs. If
// CUTROOM_WAKE_FUNCTION is not set, something else starts workers.
func (p *Parts) warmUp() *warmUp {
	w := &warmUp{
		workers: dynamo.NewWorkers(p.Records, p.Required("CUTROOM_JOBS_TABLE"), time.Now), now: time.Now,
		logger: p.Config.Logger,
	}
	if name := p.Optional("CUTROOM_WAKE_FUNCTION"); name != "" {
		w.waker = lambdainvoke.NewFunction(p.AWS, name, time.Now)
	}
	return w
}

// RefuseCold makes the program refuse an image edit while no worker runs, and start one.
func (p *Parts) RefuseCold() { p.Config.Warm = p.warmUp().warm }

// workers reports whether a lane has workers that take a job at once.
type workers interface {
	Warm(ctx context.Context, lane job.Lane) (bool, error)
}

// waker starts the function that scales the workers up from zero.
type waker interface {
	Start(ctx context.Context) error
}

// warmUp starts workers for a queue without workers.
type warmUp struct {
	workers workers
	waker   waker // may be nil
	now     func() time.Time
	logger  *slog.Logger

	mu   sync.Mutex
	next time.Time
}

// wakeEvery is the shortest time between two wakes: a second one would only find the workers starting.
const wakeEvery = 10 * time.Second

// warm is Warm of api.Config: if the lane has no worker it wakes them and reports
// false, so that the caller retries later.
func (w *warmUp) warm(ctx context.Context, lane job.Lane) (bool, error) {
	warm, err := w.workers.Warm(ctx, lane)
	if err != nil || warm || w.waker == nil {
		return warm, err
	}
	if err := w.start(ctx); err != nil {
		// The caller retries in any case, which wakes them again.
		w.logger.ErrorContext(ctx, "cannot wake the workers", "error", err)
	}
	return false, nil
}

// start starts the waker at most once in wakeEvery.
func (w *warmUp) start(ctx context.Context) error {
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

// wakeTime limits the wake in an acceptance, whose caller waits for it.
const wakeTime = 3 * time.Second

// wakingMachine wakes the workers with each job that it dispatches. The event of a
// started execution wakes them too, but its delivery is best effort. If a wake fails,
// the job waits for up to a minute, until the function scale finds it.
type wakingMachine struct {
	Machine
	warmUp *warmUp
}

func (m wakingMachine) Dispatch(ctx context.Context, j job.Job, open dynamo.OpenEntry) error {
	if err := m.Machine.Dispatch(ctx, j, open); err != nil {
		return err
	}
	waking, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeTime)
	defer cancel()
	if _, err := m.warmUp.warm(waking, j.Lane); err != nil {
		m.warmUp.logger.WarnContext(ctx, "cannot look for workers after a job was accepted", "job", j.ID, "error", err)
	}
	return nil
}
