package budget

import (
	"context"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// RenewEvery is the interval at which a process renews an allocation that it uses.
	RenewEvery = 20 * time.Second
	// A process may draw from an allocation for this long after the start of its last successful write, including
	// time while the process is suspended. After that, it must first renew the allocation.
	FenceAfter = time.Minute
	// If an allocation has not been written for this long, by the store's clock, any process may end it
	// (docs/contract/budgets.md#allocations). EndAfter is longer than FenceAfter, so nothing is drawn from an ended
	// allocation.
	EndAfter = 90 * time.Second
)

var ErrAllocationEnded = fault.New(fault.Conflict, "The allocation has ended.")

// Allocation is an amount that a process has taken from a counter. The entire Amount counts as used
// until part of it is returned.
type Allocation struct {
	Counter
	// Ids are never reused.
	ID string
	// Amount includes spent amounts but not returned amounts.
	Amount int64
	// Spent is the amount used by ended calls. Flight is the amount, on top of Spent, that stays
	// used if the process dies. It includes the reservations of running calls.
	Spent, Flight int64
}

// Unused returns the amount that goes back to the counter when the allocation ends.
func (l Allocation) Unused() int64 { return max(l.Amount-l.Spent-l.Flight, 0) }

type Taken struct {
	// Amount is the new amount of the allocation.
	Amount int64
	// Remaining is the amount on the counter that processes can still take.
	Remaining int64
}

// Allocations stores the processes' allocations. Every successful call renews the allocation.
type Allocations interface {
	// Take adds `most` to an allocation, or the remaining amount if that is smaller. If the remaining amount is
	// smaller than `least`, even after ending the counter's expired allocations, Take adds nothing. A new allocation
	// starts at 0. Take also records Spent and Flight, as Report does.
	//
	// Errors: ErrAllocationEnded.
	Take(ctx context.Context, l Allocation, limit, least, most int64) (Taken, error)
	// Report records the spent amount and the amount in flight.
	//
	// Errors: ErrAllocationEnded.
	Report(ctx context.Context, l Allocation) error
	// Return gives part of the unspent amount back to the counter, and returns the allocation's new
	// amount. It also records Spent and Flight, as Report does.
	//
	// Errors: ErrAllocationEnded.
	Return(ctx context.Context, l Allocation, amount int64) (left int64, err error)
	// End ends an allocation. The unused amount returns to the counter, even if the stored amount
	// is larger than the process knows. Ending an ended allocation is not an error.
	End(ctx context.Context, l Allocation) error
}
