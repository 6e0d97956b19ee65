package batch

import (
	"context"
	"time"
)

type Standing struct {
	Batch
	// HeldUntil is the end of the current claim. It is zero without a claim.
	HeldUntil time.Time
	// Due is when work on the batch continues. Zero means now.
	Due time.Time
	// Fruitless is how many times in a row work on it brought no result.
	Fruitless int
}

// Held reports whether a process has claimed the batch.
func (s Standing) Held(now time.Time) bool { return now.Before(s.HeldUntil) }

// Waits reports whether the batch is due and not claimed.
func (s Standing) Waits(now time.Time) bool {
	return !s.Held(now) && (s.Status == Cancelling || !now.Before(s.Due) || !now.Before(s.ExpiresAt))
}

// Claims let one process at a time work on a batch. They only avoid duplicate work: Store.Save
// prevents that a call is answered twice, even if clocks differ.
type Claims interface {
	Standings(ctx context.Context) ([]Standing, error)
	// Claim gives the batch to a holder, whose name must be unique, until the time. It reports
	// false if another holder has it.
	Claim(ctx context.Context, id, holder string, now, until time.Time) (bool, error)
	// Release ends a claim and sets when work continues. It does nothing if another holder has the batch.
	Release(ctx context.Context, id, holder string, due time.Time, fruitless int) error
}
