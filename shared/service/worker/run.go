package worker

import (
	"context"
	"errors"
	"syscall"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/trace"
)

// errOverdue is the cause for which a run's context ends near the deadline.
var errOverdue = errors.New("the job's deadline is near")

// handle takes a job in hand to its settlement.
func (l *lane) handle(h *held, turn turn) {
	defer l.hands.remove(h)
	nonce, err := l.newNonce()
	if err != nil {
		h.logger.Error("draw a nonce", "error", err)
		l.giveBack(h, troublePause)
		return
	}
	j, err := l.Runs.Start(h.ctx, h.delivery.JobID(), nonce, l.Now())
	switch {
	case err == nil:
		h.logger = h.logger.With("account", j.Account, "model", j.Model, "run", j.Runs)
		l.run(h, j, turn)
	case errors.Is(err, job.ErrNoRunsLeft):
		h.logger.Warn("the job has no runs left")
		l.fail(h, "", job.WorkerLostFailure())
	case errors.Is(err, job.ErrOverdue):
		l.fail(h, "", job.TimeoutFailure())
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
		l.drop(h)
	case h.ctx.Err() != nil:
		// The write may have been made before it was broken off.
		l.handBack(h, nonce, 0)
	default:
		h.logger.Error("start a run", "error", err)
		l.handBack(h, nonce, troublePause)
	}
}

// run does one run of a job and settles its delivery.
func (l *lane) run(h *held, j job.Job, turn turn) {
	started := l.Now()
	ended := Run{Lane: l.name, Model: j.Model, Number: j.Runs, Waited: started.Sub(j.CreatedAt), Stages: map[string]time.Duration{}}
	ctx, span := l.beginRun(h.ctx, j, started)
	defer endRun(span, &ended)
	if id := trace.ID(ctx); id != "" {
		h.logger = h.logger.With("trace_id", id)
	}
	h.logger.Info("run started", "waited", ended.Waited)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// A timer and not a context's deadline, so that the cause tells it from a
	// drain and from a lost lease.
	overdue := time.AfterFunc(j.Deadline.Sub(started)-deadlineSlack, func() { stop(errOverdue) })
	defer overdue.Stop()

	pulse := l.startPulse(ctx, stop, h.logger, j)
	result, err := l.edit(ctx, h, j, turn, pulse.report, ended.Stages)
	pulse.stop()
	cause := context.Cause(ctx) // before the end of what goes on beside the job ends it
	h.letGo()

	ended.Took = l.Now().Sub(started)
	h.logger = h.logger.With("took", ended.Took)
	switch {
	case err == nil:
		h.logger = h.logger.With(ended.stages())
		ended.Outcome = l.complete(h, j.Nonce, result)
	case errors.Is(cause, errLost):
		// Another worker has the job now, or it has ended. The delivery is left
		// as it is: to settle it could take it from that worker.
		h.logger.Warn("run lost", "cause", cause)
		ended.Outcome = Lost
	case errors.Is(cause, errOverdue):
		h.logger.Warn("run stopped at the job's deadline")
		l.fail(h, j.Nonce, job.TimeoutFailure())
		ended.Outcome, ended.Code = Failed, job.TimedOut
	case cause != nil:
		h.logger.Info("run handed back")
		l.handBack(h, j.Nonce, 0)
		ended.Outcome = HandedBack
	default:
		ended.Outcome, ended.Code = l.failOrRepeat(h, j, err)
	}
	if l.Observer != nil {
		l.Observer.Ran(ended)
	}
}

func (l *lane) complete(h *held, nonce string, result job.Result) Outcome {
	err := l.settle(h.ctx, h.logger, "complete", func(ctx context.Context) error {
		return h.delivery.Complete(ctx, nonce, result)
	})
	switch {
	case err == nil:
		h.logger.Info("job completed", "bytes", result.Size)
		return Completed
	case fault.Is(err, fault.Conflict):
		// The job ended otherwise, or is another run's: this result is nobody's.
		l.settle(h.ctx, h.logger, "delete the result", func(ctx context.Context) error { return l.Blobs.Delete(ctx, result.Blob) })
	}
	return Lost
}

// fail ends the job: that of a run, or whatever the run where there is no nonce.
func (l *lane) fail(h *held, nonce string, failure job.Failure) {
	h.letGo()
	l.settle(h.ctx, h.logger, "fail", func(ctx context.Context) error { return h.delivery.Fail(ctx, nonce, failure) })
}

// failOrRepeat settles a run that failed by itself: the job runs again when
// another run may succeed and it has one left, else it fails.
func (l *lane) failOrRepeat(h *held, j job.Job, err error) (Outcome, job.Code) {
	reason := asFailure(err)
	if reason.Retryable && j.Runs < job.MaxRuns {
		h.logger.Warn("run failed, to be repeated", "code", reason.Code, "error", err)
		delay := time.Second << (2 * (j.Runs - 1)) // 1 s, then 4 s
		l.settle(h.ctx, h.logger, "return", func(ctx context.Context) error { return h.delivery.Return(ctx, delay) })
		return Repeated, reason.Code
	}
	h.logger.Warn("job failed", "code", reason.Code, "error", err)
	l.fail(h, j.Nonce, job.Failure{Code: reason.Code, Message: reason.Message})
	return Failed, reason.Code
}

// drop settles a job that needs nothing more.
func (l *lane) drop(h *held) {
	h.letGo()
	l.settle(h.ctx, h.logger, "drop", h.delivery.Drop)
}

// handBack takes a run back, as if it had not started, and returns the job.
func (l *lane) handBack(h *held, nonce string, delay time.Duration) {
	h.letGo()
	l.settle(h.ctx, h.logger, "release", func(ctx context.Context) error {
		return l.Runs.Release(ctx, h.delivery.JobID(), nonce)
	})
	l.settle(h.ctx, h.logger, "return", func(ctx context.Context) error { return h.delivery.Return(ctx, delay) })
}

// giveBack returns a job whose run has not started, unless its lease is lost, by
// which it is another worker's already.
func (l *lane) giveBack(h *held, delay time.Duration) {
	gone := errors.Is(context.Cause(h.ctx), errLost)
	h.letGo()
	if !gone {
		l.settle(h.ctx, h.logger, "return", func(ctx context.Context) error { return h.delivery.Return(ctx, delay) })
	}
}

// asFailure tells what a run's error means for its job.
func asFailure(err error) *engine.Error {
	// The engine's own files meet a full disk as the system's error.
	if fault.Is(err, fault.StorageFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &engine.Error{Code: job.EngineError, Message: "There is no room left to store the result.", Err: err}
	}
	return engine.AsError(err)
}
