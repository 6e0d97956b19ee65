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

var errOverdue = errors.New("the job's deadline is near")

func (l *lane) handle(lease *lease, slot slot) {
	defer l.worker.inflight.remove(lease)
	defer func() { lease.thumbnails.end() }()
	defer func() { lease.previews.remove(lease.ctx) }()
	nonce, err := l.worker.newNonce()
	if err != nil {
		lease.logger.Error("cannot generate a nonce", "error", err)
		l.nack(lease, troublePause)
		return
	}
	j, err := l.worker.config.Runs.Start(lease.ctx, lease.delivery.JobID(), nonce, l.worker.config.Now())
	switch {
	case err == nil:
		lease.logger = lease.logger.With("account", j.Account, "model", j.Model, "run", j.Runs)
		if l.run(lease, j, slot) == Completed {
			slot.free()
			l.deleteInputs(lease, j)
			lease.thumbnails.store()
		}
	case errors.Is(err, job.ErrNoRunsLeft):
		lease.logger.Warn("the job has no runs left")
		l.fail(lease, job.Job{}, "", job.WorkerLostFailure())
	case errors.Is(err, job.ErrOverdue):
		l.fail(lease, j, "", j.LateFailure())
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
		l.drop(lease)
	case lease.ctx.Err() != nil:
		// The interrupted write may have succeeded, so undo it.
		l.release(lease, nonce, 0)
	default:
		lease.logger.Error("cannot start a run", "error", err)
		l.release(lease, nonce, troublePause)
	}
}

func (l *lane) run(lease *lease, j job.Job, slot slot) Outcome {
	started := l.worker.config.Now()
	ended := Run{
		Lane: l.name, Model: j.Model, Number: j.Runs, Waited: started.Sub(j.CreatedAt), Stages: map[string]time.Duration{},
	}
	ctx, span := l.worker.beginRun(lease.ctx, j, started)
	defer endRun(span, &ended)
	if id := trace.ID(ctx); id != "" {
		lease.logger = lease.logger.With("trace_id", id)
	}
	lease.logger.Info("run started", "waited", ended.Waited)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// Use a timer, because an expired context deadline would look like a drain.
	overdue := time.AfterFunc(j.Deadline.Sub(started)-deadlineSlack, func() { stop(errOverdue) })
	defer overdue.Stop()

	pulse := l.worker.startPulse(ctx, stop, lease.logger, j)
	previews := l.worker.startPreviews(ctx, lease.logger, j)
	lease.previews = previews
	result, err := l.edit(ctx, lease, j, slot, func(p engine.Progress) {
		pulse.report(p)
		previews.report(p)
	}, ended.Stages)
	pulse.stop()
	previews.stop()
	cause := context.Cause(ctx) // read it first, because lease.stop ends the context
	lease.stop()

	ended.Took = l.worker.config.Now().Sub(started)
	lease.logger = lease.logger.With("took", ended.Took)
	switch {
	case err == nil:
		lease.logger = lease.logger.With(ended.stages())
		ended.Outcome = l.complete(lease, j.Nonce, result)
	case errors.Is(cause, errLost):
		// Do not settle the delivery, because that could take the job from another worker.
		lease.logger.Warn("run lost", "cause", cause)
		ended.Outcome = Lost
	case errors.Is(cause, errOverdue):
		lease.logger.Warn("run stopped at the job's deadline")
		l.fail(lease, j, j.Nonce, job.TimeoutFailure())
		ended.Outcome, ended.Code = Failed, job.TimedOut
	case cause != nil:
		lease.logger.Info("run handed back")
		l.release(lease, j.Nonce, 0)
		ended.Outcome = HandedBack
	case ended.Stages[stageStore] == 0 && fault.IsShortage(err):
		lease.logger.Warn("run handed back because the machine is short of resources", "error", err)
		l.release(lease, j.Nonce, troublePause)
		ended.Outcome = HandedBack
	default:
		ended.Outcome, ended.Code = l.failOrRepeat(lease, j, err)
	}
	if l.worker.config.Observer != nil {
		l.worker.config.Observer.Ran(ended)
	}
	return ended.Outcome
}

func (l *lane) complete(lease *lease, nonce string, result job.Result) Outcome {
	err := l.worker.settle(lease.ctx, lease.logger, "complete", func(ctx context.Context) error {
		return lease.delivery.Complete(ctx, nonce, result)
	})
	switch {
	case err == nil:
		lease.logger.Info("job completed", "bytes", result.Size)
		return Completed
	case fault.Is(err, fault.Conflict):
		// The job has ended or has another run.
		l.worker.settle(
			lease.ctx, lease.logger, "delete the result",
			func(ctx context.Context) error { return l.worker.config.Blobs.Delete(ctx, result.Blob) },
		)
	}
	return Lost
}

// fail ends the job. If the nonce is empty, it ends the job regardless of the run.
func (l *lane) fail(lease *lease, j job.Job, nonce string, failure job.Failure) {
	lease.stop()
	err := l.worker.settle(
		lease.ctx, lease.logger, "fail", func(ctx context.Context) error { return lease.delivery.Fail(ctx, nonce, failure) },
	)
	if err == nil {
		l.deleteInputs(lease, j)
	}
}

// deleteInputs deletes an ended job's inputs, which no longer count toward the account's quota. On
// one machine, a sweep deletes inputs that remain after a crash.
func (l *lane) deleteInputs(lease *lease, j job.Job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(lease.ctx), settleTime)
	defer cancel()
	if err := j.DeleteInputs(ctx, l.worker.config.Blobs); err != nil {
		lease.logger.Warn("cannot delete the inputs of an ended job", "error", err)
	}
}

// failOrRepeat settles a failed run. The job runs again if another run may succeed and the job has runs left.
func (l *lane) failOrRepeat(lease *lease, j job.Job, err error) (Outcome, job.Code) {
	reason := asFailure(err)
	if reason.Retryable && j.Runs < job.MaxRuns {
		lease.logger.Warn("run failed; the job will be retried", "code", reason.Code, "error", err)
		delay := time.Second << (2 * (j.Runs - 1)) // 1 s, then 4 s
		l.requeue(lease, delay)
		return Repeated, reason.Code
	}
	lease.logger.Warn("job failed", "code", reason.Code, "error", err)
	l.fail(lease, j, j.Nonce, job.Failure{Code: reason.Code, Message: reason.Message})
	return Failed, reason.Code
}

func (l *lane) drop(lease *lease) {
	lease.stop()
	l.worker.settle(lease.ctx, lease.logger, "drop", lease.delivery.Drop)
}

func (l *lane) requeue(lease *lease, delay time.Duration) {
	l.worker.settle(lease.ctx, lease.logger, "return", func(ctx context.Context) error {
		return lease.delivery.Nack(ctx, delay)
	})
}

// release undoes the start of a run, so that the run does not count, and requeues the job.
func (l *lane) release(lease *lease, nonce string, delay time.Duration) {
	lease.stop()
	l.worker.settle(lease.ctx, lease.logger, "release", func(ctx context.Context) error {
		return l.worker.config.Runs.Release(ctx, lease.delivery.JobID(), nonce)
	})
	l.requeue(lease, delay)
}

// nack requeues a job that has not started a run. If the lease is lost, it does nothing, because
// another worker has the job.
func (l *lane) nack(lease *lease, delay time.Duration) {
	gone := errors.Is(context.Cause(lease.ctx), errLost)
	lease.stop()
	if !gone {
		l.requeue(lease, delay)
	}
}

func asFailure(err error) *engine.Error {
	// The engine reports a full disk as a system error.
	if fault.Is(err, fault.StorageFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &engine.Error{Code: job.EngineError, Message: "The disk is full, so the result could not be stored.", Err: err}
	}
	return engine.AsError(err)
}
