package batch

import (
	"context"
	"time"
)

type Standing struct {
	Batch
	HeldUntil time.Time
	// Due is when work on the batch continues. Zero means now.
	Due time.Time
	// Fruitless counts consecutive steps without a result.
	Fruitless int
}

func (s Standing) Held(now time.Time) bool { return now.Before(s.HeldUntil) }

func (s Standing) Waits(now time.Time) bool {
	return !s.Held(now) && (s.Status == Cancelling || !now.Before(s.Due) || !now.Before(s.ExpiresAt))
}

// Claims lets one process at a time work on a batch. It only avoids duplicate work: Store.Save
// ensures that no call is counted twice, even if clocks differ.
type Claims interface {
	Standings(ctx context.Context) ([]Standing, error)
	// Claim gives the batch to a holder, whose name must be unique, until the given time. It returns
	// false if another holder has the batch.
	Claim(ctx context.Context, id, holder string, now, until time.Time) (bool, error)
	// Release ends a claim and sets when work continues. It does nothing if another holder has the
	// batch.
	Release(ctx context.Context, id, holder string, due time.Time, fruitless int) error
}
