package batch

import (
	"context"
	"time"
)

type Standing struct {
	Batch
	HeldUntil time.Time
	// Due is when to resume work on the batch. Zero means now.
	Due time.Time
	// Fruitless is the number of consecutive steps without a result.
	Fruitless int
}

func (s Standing) Held(now time.Time) bool { return now.Before(s.HeldUntil) }

func (s Standing) Waits(now time.Time) bool {
	return !s.Held(now) && (s.Status == Cancelling || !now.Before(s.Due) || !now.Before(s.ExpiresAt))
}

// Claims ensures that normally only one process at a time works on a batch. It only avoids duplicate work. Store.Save
// ensures that no call is counted twice, even if clocks differ.
type Claims interface {
	Standings(ctx context.Context) ([]Standing, error)
	// Claim gives the batch to a holder until the given time. The holder's name must be unique.
	// Claim returns false if another holder has the batch.
	Claim(ctx context.Context, id, holder string, now, until time.Time) (bool, error)
	// Release ends a claim and sets when to resume work. It does nothing if another holder has the batch.
	Release(ctx context.Context, id, holder string, due time.Time, fruitless int) error
}
