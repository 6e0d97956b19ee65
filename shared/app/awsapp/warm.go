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

// warmUp returns a warmUp that invokes the wake function if no worker is running. It never does so
// if CUTROOM_WAKE_FUNCTION is not set.
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

// RejectCold makes the program reject image edits while no worker is running. A rejected edit starts a worker.
func (p *Parts) RejectCold() { p.Config.Warm = p.warmUp().warm }

type workers interface {
	Warm(ctx context.Context, lane job.Lane) (bool, error)
}

type waker interface {
	Start(ctx context.Context) error
}

type warmUp struct {
	workers workers
	waker   waker // may be nil
	now     func() time.Time
	logger  *slog.Logger

	mu   sync.Mutex
	next time.Time
}

// wakeEvery is the minimum time between two wake calls. Workers take longer than that to start.
const wakeEvery = 10 * time.Second

// warm implements api.Config.Warm. If the lane has no worker, it starts workers and returns false.
func (w *warmUp) warm(ctx context.Context, lane job.Lane) (bool, error) {
	warm, err := w.workers.Warm(ctx, lane)
	if err != nil || warm || w.waker == nil {
		return warm, err
	}
	if err := w.start(ctx); err != nil {
		// The client will retry in any case, and the retry wakes the workers again.
		w.logger.ErrorContext(ctx, "cannot wake the workers", "error", err)
	}
	return false, nil
}

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

// wakeTime is the timeout of a wake call. It is short because an accepted job's client waits for the call.
const wakeTime = 3 * time.Second

// wakingMachine wakes the workers for each job. The event for the started execution wakes them too,
// but may be lost. If both fail, the scale function finds the job within a minute.
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
		m.warmUp.logger.WarnContext(ctx, "cannot wake the workers for an accepted job", "job", j.ID, "error", err)
	}
	return nil
}
