package batches

import (
	"context"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
)

const (
	// maxAttempts limits how many times in a row the process may crash while it works on a batch. After that, the
	// batch fails, so that it cannot keep the server from starting.
	maxAttempts = 5
	// A batch during which the process crashed suspectAfter times runs apart from other suspects for suspectFor, so
	// that it does not make them crash too.
	suspectAfter = 2
	suspectFor   = time.Minute
	recordTime   = 10 * time.Second
)

// attemptsAt returns how many times the process crashed while it worked on the batch in its current state.
func attemptsAt(b batch.Batch) batch.Attempts {
	at := batch.Attempts{Status: b.Status, Results: b.Answered + b.Failed}
	if b.Attempts.Status == at.Status && b.Attempts.Results == at.Results {
		at.Count = b.Attempts.Count
	}
	return at
}

// attempt records the start of work on a batch, or ends a batch that has no attempts left. If the
// process crashes, the record remains.
//
// Errors: fault.Conflict if the status has changed; fault.NotFound.
func (r *Runner) attempt(ctx context.Context, b batch.Batch) error {
	b.Attempts = attemptsAt(b)
	if b.Attempts.Count < maxAttempts {
		b.Attempts.Count++
		return r.change(ctx, b.Status, b)
	}
	r.config.Logger.Error("ending a batch: the process crashed repeatedly while working on it", "batch", b.ID,
		"account", b.Account, "status", string(b.Status), "attempts", b.Attempts.Count)
	why := batch.Error{Code: "internal_error", Message: "The service failed several times while it processed the batch."}
	if b.Status != batch.InProgress {
		return r.fail(ctx, b, why)
	}
	// Finalize the batch, because its completed calls were paid for.
	b.Status, b.Outcome, b.FinalizingAt = batch.Finalizing, batch.Failed, r.now()
	b.Errors = []batch.Error{why}
	return r.change(ctx, batch.InProgress, b)
}

// stopped removes the record of an attempt after a clean shutdown.
func (r *Runner) stopped(ctx context.Context, b batch.Batch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	for {
		current, err := r.config.Store.Get(ctx, b.Account, b.ID)
		if err == nil {
			if current.Status.Ended() || current.Attempts.Count == 0 {
				return
			}
			current.Attempts.Count--
			err = r.change(ctx, current.Status, current)
		}
		if fault.Is(err, fault.Conflict) {
			continue
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			r.config.Logger.Error("cannot record that work on a batch has stopped", "batch", b.ID, "error", err)
		}
		return
	}
}

// fail ends a batch with an error. It removes the ids of files that were not written.
func (r *Runner) fail(ctx context.Context, b batch.Batch, why batch.Error) error {
	from := b.Status
	for _, id := range []*string{&b.Output, &b.Failures} {
		if _, err := r.config.Files.Get(ctx, b.Account, *id); *id != "" && fault.Is(err, fault.NotFound) {
			*id = ""
		}
	}
	b.Status, b.EndedAt, b.Errors = batch.Failed, r.now(), []batch.Error{why}
	return r.change(ctx, from, b)
}
