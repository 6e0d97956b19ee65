// Package worker takes queued jobs to their outcome: it leases a job, starts a
// run, fetches and probes the inputs, lets the engine work while it reports
// progress and keeps the lease, stores the result and reports it. The same loop
// runs inside the one-machine server and in the worker's container.
//
// A worker is never trusted to stay alive, or to be the only one: every write
// is conditional on the run's nonce (see job.Runs), so that one that lost its
// lease changes nothing.
package worker

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"cutroom/shared/blob"
	"cutroom/shared/engine"
	"cutroom/shared/fault"
	"cutroom/shared/job"
	"cutroom/shared/media"
	"cutroom/shared/model"
)

// Prober looks into a media file.
//
// Errors: *engine.Error with the code invalid_input when the file cannot be
// decoded, or is beyond the catalog's limits.
type Prober interface {
	ProbeVideo(ctx context.Context, path, mime string) (media.Info, error)
	ProbeImage(ctx context.Context, path, mime string) (media.Info, error)
}

// Config is what a [Worker] is made of.
type Config struct {
	Queue   Queue
	Runs    job.Runs
	Blobs   blob.Store
	Engine  engine.Engine
	Prober  Prober
	Catalog *model.Catalog
	// Enhancer expands the prompts of jobs that ask for it; nil expands none.
	Enhancer Enhancer
	// Folder is where runs get their scratch folders.
	Folder string
	// Slots is how many jobs of a lane run at once.
	Slots map[job.Lane]int
	// Lease is how long a job stays with a worker that has gone silent. It is
	// extended three times as often.
	Lease time.Duration
	// ProgressEvery is the least time between two records of progress.
	ProgressEvery time.Duration
	// CheckEvery is how often a run looks at its job's record when it has
	// nothing to write, and so the longest that a cancelled one goes on; 0 looks
	// with every extension of the lease.
	CheckEvery time.Duration
	Now        func() time.Time
	// Random is read for the nonces of runs.
	Random io.Reader
	Logger *slog.Logger
}

const (
	// settleTime bounds the reports that follow a run, also while draining.
	settleTime = 10 * time.Second
	// deadlineSlack is how long before its deadline a job's run is stopped, so
	// that its end is written in time.
	deadlineSlack = 3 * time.Second
	// troublePause is how long a lane waits after its queue failed.
	troublePause = time.Second
)

// Worker runs jobs. Make it with [New], run it with Run.
type Worker struct{ Config }

// New makes a worker.
func New(c Config) *Worker { return &Worker{c} }

// Run works until the context ends. Then it drains: engines are stopped, and
// the jobs in hand are handed back at once, which costs them none of their runs.
// It returns when all is handed back.
func (w *Worker) Run(ctx context.Context) {
	var slots sync.WaitGroup
	for lane, n := range w.Slots {
		for range n {
			slots.Go(func() { w.work(ctx, lane) })
		}
	}
	slots.Wait()
}

// work is the life of one slot.
func (w *Worker) work(ctx context.Context, lane job.Lane) {
	for ctx.Err() == nil {
		delivery, err := w.Queue.Receive(ctx, lane, w.Lease)
		if err != nil {
			if ctx.Err() == nil {
				w.Logger.Error("receive a job", "lane", lane, "error", err)
				pause(ctx, troublePause)
			}
			continue
		}
		w.handle(ctx, delivery)
	}
}

// handle takes one delivery to its settlement.
func (w *Worker) handle(ctx context.Context, delivery Delivery) {
	logger := w.Logger.With("job", delivery.JobID())
	nonce, err := w.newNonce()
	if err != nil {
		logger.Error("draw a nonce", "error", err)
		w.settle(ctx, logger, "return", func(ctx context.Context) error { return delivery.Return(ctx, troublePause) })
		return
	}
	j, err := w.Runs.Start(ctx, delivery.JobID(), nonce, w.Now())
	switch {
	case err == nil:
		w.run(ctx, logger.With("account", j.Account, "model", j.Model, "run", j.Runs), delivery, j)
	case errors.Is(err, job.ErrNoRunsLeft):
		logger.Warn("the job has no runs left")
		w.settle(ctx, logger, "fail", func(ctx context.Context) error { return delivery.Fail(ctx, "", job.WorkerLostFailure()) })
	case errors.Is(err, job.ErrOverdue):
		w.settle(ctx, logger, "fail", func(ctx context.Context) error { return delivery.Fail(ctx, "", job.TimeoutFailure()) })
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
		w.settle(ctx, logger, "drop", delivery.Drop)
	case ctx.Err() != nil:
		// The write may have been made before the drain broke it off.
		w.handBack(ctx, logger, delivery, nonce, 0)
	default:
		logger.Error("start a run", "error", err)
		w.handBack(ctx, logger, delivery, nonce, troublePause)
	}
}

// run does one run of a job and settles its delivery.
func (w *Worker) run(ctx context.Context, logger *slog.Logger, delivery Delivery, j job.Job) {
	started := w.Now()
	logger.Info("run started", "waited", started.Sub(j.CreatedAt))
	runContext, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// A timer and not a context's deadline, so that the cause tells it from a
	// drain and from a lost lease.
	overdue := time.AfterFunc(j.Deadline.Sub(started)-deadlineSlack, func() { stop(errOverdue) })
	defer overdue.Stop()

	pulse := w.startPulse(runContext, stop, logger, delivery, j)
	result, err := w.edit(runContext, j, pulse.report)
	pulse.stop()

	logger = logger.With("took", w.Now().Sub(started))
	cause := context.Cause(runContext)
	switch {
	case err == nil:
		w.complete(ctx, logger, delivery, j, result)
	case errors.Is(cause, errLost):
		// Another worker has the job now, or it has ended. The delivery is left
		// as it is: to settle it could take it from that worker.
		logger.Warn("run lost", "cause", cause)
	case errors.Is(cause, errOverdue):
		logger.Warn("run stopped at the job's deadline")
		w.fail(ctx, logger, delivery, j, job.TimeoutFailure())
	case ctx.Err() != nil:
		logger.Info("run handed back")
		w.handBack(ctx, logger, delivery, j.Nonce, 0)
	default:
		w.failOrRepeat(ctx, logger, delivery, j, err)
	}
}

func (w *Worker) complete(ctx context.Context, logger *slog.Logger, delivery Delivery, j job.Job, result job.Result) {
	err := w.settle(ctx, logger, "complete", func(ctx context.Context) error {
		return delivery.Complete(ctx, j.Nonce, result)
	})
	switch {
	case err == nil:
		logger.Info("job completed", "bytes", result.Size)
	case fault.Is(err, fault.Conflict):
		// The job ended otherwise, or is another run's: this result is nobody's.
		w.settle(ctx, logger, "delete the result", func(ctx context.Context) error { return w.Blobs.Delete(ctx, result.Blob) })
	}
}

func (w *Worker) fail(ctx context.Context, logger *slog.Logger, delivery Delivery, j job.Job, failure job.Failure) {
	w.settle(ctx, logger, "fail", func(ctx context.Context) error { return delivery.Fail(ctx, j.Nonce, failure) })
}

// failOrRepeat settles a run that failed by itself: the job runs again when
// another run may succeed and it has one left, else it fails.
func (w *Worker) failOrRepeat(ctx context.Context, logger *slog.Logger, delivery Delivery, j job.Job, err error) {
	reason := asFailure(err)
	if reason.Retryable && j.Runs < job.MaxRuns {
		logger.Warn("run failed, to be repeated", "code", reason.Code, "error", err)
		delay := time.Second << (2 * (j.Runs - 1)) // 1 s, then 4 s
		w.settle(ctx, logger, "return", func(ctx context.Context) error { return delivery.Return(ctx, delay) })
		return
	}
	logger.Warn("job failed", "code", reason.Code, "error", err)
	w.fail(ctx, logger, delivery, j, job.Failure{Code: reason.Code, Message: reason.Message})
}

// handBack takes a run back, as if it had not started, and returns the job.
func (w *Worker) handBack(ctx context.Context, logger *slog.Logger, delivery Delivery, nonce string, delay time.Duration) {
	w.settle(ctx, logger, "release", func(ctx context.Context) error {
		return w.Runs.Release(ctx, delivery.JobID(), nonce)
	})
	w.settle(ctx, logger, "return", func(ctx context.Context) error { return delivery.Return(ctx, delay) })
}

// settle makes a report, also while draining, and repeats it while the store is
// in trouble. A definite refusal is returned at once; it needs no log line, as
// it means that somebody else has settled the job.
func (w *Worker) settle(ctx context.Context, logger *slog.Logger, what string, report func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		err := report(ctx)
		if err == nil || fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
			return err
		}
		if !pause(ctx, wait) {
			// The lease runs out, and the job is received again.
			logger.Error("settle a job", "report", what, "error", err)
			return err
		}
	}
}

func (w *Worker) newNonce() (string, error) {
	var bytes [8]byte
	if _, err := io.ReadFull(w.Random, bytes[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(bytes[:]), nil
}

// asFailure tells what a run's error means for its job.
func asFailure(err error) *engine.Error {
	// The engine's own files meet a full disk as the system's error.
	if fault.Is(err, fault.StorageFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &engine.Error{Code: job.EngineError, Message: "There is no room left to store the result.", Err: err}
	}
	return engine.AsError(err)
}

// pause waits, and reports whether it did so to the end.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// The causes for which a run's context ends, besides a drain.
var (
	errOverdue = errors.New("the job's deadline is near")
	errLost    = errors.New("the run is no longer the job's own")
)

func lost(cause error) error { return fmt.Errorf("%w: %w", errLost, cause) }
