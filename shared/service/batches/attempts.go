package batches

import (
	"context"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
)

const (
	// maxAttempts is how often in a row the process may die at a batch that makes no
	// progress. It fails then, so that no batch can keep the server from starting.
	maxAttempts = 5
	// suspectAfter is after how many of them a batch is worked on apart from others of
	// which the same is known, so that one does not take others with it, and suspectFor
	// for how long each time.
	suspectAfter = 2
	suspectFor   = time.Minute
	// lastNote bounds the note that work on a batch has stopped in good order.
	lastNote = 10 * time.Second
)

// attemptsAt returns how often the process has died at a batch in its present state.
func attemptsAt(b batch.Batch) batch.Attempts {
	at := batch.Attempts{Status: b.Status, Results: b.Answered + b.Failed}
	if b.Attempts.Status == at.Status && b.Attempts.Results == at.Results {
		at.Count = b.Attempts.Count
	}
	return at
}

// attempt notes that work on a batch begins, before anything of it is read: if the
// process dies of it, the note stays. A batch that has had all its attempts is ended.
//
// Errors: fault.Conflict if its status has changed meanwhile; fault.NotFound.
func (r *Runner) attempt(ctx context.Context, b batch.Batch) error {
	b.Attempts = attemptsAt(b)
	if b.Attempts.Count < maxAttempts {
		b.Attempts.Count++
		return r.change(ctx, b.Status, b)
	}
	r.config.Logger.Error("a batch is ended: the process died whenever it worked on it", "batch", b.ID,
		"account", b.Account, "status", string(b.Status), "attempts", b.Attempts.Count)
	why := batch.Error{Code: "internal_error", Message: "The service failed several times while it worked on the batch."}
	if b.Status != batch.InProgress {
		return r.fail(ctx, b, why)
	}
	// What was answered was paid for.
	b.Status, b.Outcome, b.FinalizingAt = batch.Finalizing, batch.Failed, r.now()
	b.Errors = []batch.Error{why}
	return r.change(ctx, batch.InProgress, b)
}

// stopped takes the note of an attempt back: work on the batch has stopped in good order.
func (r *Runner) stopped(ctx context.Context, b batch.Batch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastNote)
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
			r.config.Logger.Error("note that work on a batch has stopped", "batch", b.ID, "error", err)
		}
		return
	}
}

// fail ends a batch with an error. Files that were not written are not named.
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
