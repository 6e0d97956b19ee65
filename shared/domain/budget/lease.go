package budget

import (
	"context"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// RenewEvery is how often a process renews a lease while it works.
	RenewEvery = 20 * time.Second
	// FenceAfter is how long a process draws from a lease after the beginning of its
	// last successful write, by a clock that goes on while the process is stopped. It
	// draws again only after a renewal.
	FenceAfter = time.Minute
	// EndAfter is how old, by the store's time, the last write of a lease is when
	// anybody may end it (docs/contract/budgets.md#allocations). As it is longer
	// than FenceAfter, nothing is drawn from a lease that was ended.
	EndAfter = 90 * time.Second
)

// ErrLeaseOver is returned to a process that writes under a lease that was ended.
var ErrLeaseOver = fault.New(fault.Conflict, "The lease is over.")

// Lease is a share of a counter that a process has taken. All of Share counts as used on
// the counter until some of it returns.
type Lease struct {
	Counter
	// ID is unique; a lease that was ended never comes back.
	ID string
	// Share is all that was taken and not returned, what was spent included.
	Share int64
	// Spent is what calls that have ended have used of the share, at most Share, and Flight
	// how much of the rest stays used besides if the process dies: at least what is reserved
	// for calls under way. All of the rest does if it is more than that.
	Spent, Flight int64
}

// Unused is what returns to the counter when the lease ends.
func (l Lease) Unused() int64 { return max(l.Share-l.Spent-l.Flight, 0) }

// Taken is the result of taking from a counter.
type Taken struct {
	// Share is that of the lease, which is larger than before unless too little remains.
	Share int64
	// Remaining is what is left on the counter for all.
	Remaining int64
}

// Leases keeps the shares that processes have taken from counters. Every call that
// succeeds renews the lease.
type Leases interface {
	// Take enlarges the share of a lease by as much as remains of the limit, at least
	// by least and at most by most. If less than least remains, also after all leases on
	// the counter that are over were ended, the share stays. A lease whose share is 0
	// begins. Spent and Flight are noted as Tell does.
	//
	// Errors: ErrLeaseOver.
	Take(ctx context.Context, l Lease, limit, least, most int64) (Taken, error)
	// Tell notes what was spent and what is in flight.
	//
	// Errors: ErrLeaseOver.
	Tell(ctx context.Context, l Lease) error
	// Return gives some of the share back to the counter, at most what is not spent, and
	// returns the share that is left. It tells too.
	//
	// Errors: ErrLeaseOver.
	Return(ctx context.Context, l Lease, amount int64) (share int64, err error)
	// End ends a lease: what is unused returns to the counter, also of a larger share than
	// its owner knows of. It does not fail if the lease is over.
	End(ctx context.Context, l Lease) error
}
