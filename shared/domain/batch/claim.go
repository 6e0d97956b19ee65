package batch

import (
	"context"
	"time"
)

// Standing is an open batch, and how work on it stands where several processes do that.
type Standing struct {
	Batch
	// HeldUntil is until when somebody works on it at the most; zero if nobody does.
	HeldUntil time.Time
	// Due is when work on it is to go on; zero for at once.
	Due time.Time
	// Fruitless is how many times in a row work on it brought no result.
	Fruitless int
}

// Held reports whether somebody works on the batch.
func (s Standing) Held(now time.Time) bool { return now.Before(s.HeldUntil) }

// Waits reports whether nobody works on the batch, and somebody is to.
func (s Standing) Waits(now time.Time) bool {
	return !s.Held(now) && (s.Status == Cancelling || !now.Before(s.Due) || !now.Before(s.ExpiresAt))
}

// Claims let one process at a time work on a batch. They save work that is done twice; that no
// call is answered twice does not depend on them, nor on clocks that agree.
type Claims interface {
	// Standings returns the batches of all accounts that have not ended, oldest first.
	Standings(ctx context.Context) ([]Standing, error)
	// Claim lets its holder alone, a name that nobody else has, work on a batch until the
	// time. It reports whether the batch is claimed: not if somebody else works on it.
	Claim(ctx context.Context, id, holder string, now, until time.Time) (bool, error)
	// Release ends a claim, and says when work is to go on. It does nothing if another holder
	// has the batch.
	Release(ctx context.Context, id, holder string, due time.Time, fruitless int) error
}
