package budget

import (
	"context"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// RenewEvery is the interval at which a process renews an allocation that it uses.
	RenewEvery = 20 * time.Second
	// FenceAfter is the time, even while suspended, for which a process may draw from an allocation
	// after the start of its last successful write. After that it must renew the allocation first.
	FenceAfter = time.Minute
	// EndAfter is the age of an allocation's last write, by the store's clock, after which any
	// process may end the allocation (docs/contract/budgets.md#allocations). It is longer than
	// FenceAfter, so nothing is drawn from an ended allocation.
	EndAfter = 90 * time.Second
)

var ErrAllocationEnded = fault.New(fault.Conflict, "The allocation has ended.")

// Allocation is an amount that a process has taken from a counter. The entire Amount counts as used
// on the counter until some of it is returned.
type Allocation struct {
	Counter
	// Ids are never reused.
	ID string
	// Amount includes the spent amount, but not returned amounts.
	Amount int64
	// Spent is the amount used by ended calls. Flight is the part of the rest that stays used if
	// the process dies. It includes the reservations of running calls.
	Spent, Flight int64
}

// Unused is the amount that goes back to the counter when the allocation ends.
func (l Allocation) Unused() int64 { return max(l.Amount-l.Spent-l.Flight, 0) }

type Taken struct {
	// Amount is the new amount of the allocation.
	Amount int64
	// Remaining is the amount that all processes may still take from the counter.
	Remaining int64
}

// Allocations stores the allocations of processes. Every successful call renews the allocation.
type Allocations interface {
	// Take enlarges an allocation by the remaining amount, clamped to least and most. If less than
	// least remains, even after expired allocations on the counter were ended, the amount is
	// unchanged. A new allocation has the amount 0. Take also records Spent and Flight, as Report
	// does.
	//
	// Errors: ErrAllocationEnded.
	Take(ctx context.Context, l Allocation, limit, least, most int64) (Taken, error)
	// Report records the spent amount and the amount in flight.
	//
	// Errors: ErrAllocationEnded.
	Report(ctx context.Context, l Allocation) error
	// Return gives a part of the unspent amount back to the counter, and returns the new amount of
	// the allocation. It also records Spent and Flight, as Report does.
	//
	// Errors: ErrAllocationEnded.
	Return(ctx context.Context, l Allocation, amount int64) (left int64, err error)
	// End ends an allocation. Unused amounts return to the counter, even if the stored amount is
	// larger than the owner believes. It succeeds if the allocation has already ended.
	End(ctx context.Context, l Allocation) error
}
