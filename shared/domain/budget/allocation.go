package budget

import (
	"context"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// RenewEvery is how often a process renews a lease that it uses.
	RenewEvery = 20 * time.Second
	// FenceAfter is how long a process draws from a lease after its last successful write started,
	// by a clock that runs while the process is stopped. Then it must renew the lease first.
	FenceAfter = time.Minute
	// EndAfter is how old, by the store's time, the last write of a lease is when
	// anybody may end it (docs/contract/budgets.md#allocations). As it is longer
	// than FenceAfter, nothing is drawn from a lease that was ended.
	EndAfter = 90 * time.Second
)

var ErrAllocationEnded = fault.New(fault.Conflict, "The lease is over.")

// Allocation is a share of a counter that a process has taken. All of Share counts as used on
// the counter until some of it returns.
type Allocation struct {
	Counter
	// ID is unique. An ended lease never comes back.
	ID string
	// Share is the amount taken and not returned, including the spent amount.
	Amount int64
	// Spent is the part of the share that ended calls have used. Flight is how much of the rest
	// stays used if the process dies: at least the reservations of running calls.
	Spent, Flight int64
}

// Unused is the amount that returns to the counter when the lease ends.
func (l Allocation) Unused() int64 { return max(l.Amount-l.Spent-l.Flight, 0) }

type Taken struct {
	// Share is the new share of the lease. It is larger than before unless too little remains.
	Amount int64
	// Remaining is the amount left on the counter for all processes.
	Remaining int64
}

// Allocations keeps the shares that processes have taken from counters. Every successful call renews the lease.
type Allocations interface {
	// Take enlarges the share of a lease by the rest of the limit, at least by least and at most by
	// most. If less than least remains, even after ending expired leases on the counter, the share
	// stays. A lease starts with a share of 0. Take also records Spent and Flight, like Tell.
	//
	// Errors: ErrAllocationEnded.
	Take(ctx context.Context, l Allocation, limit, least, most int64) (Taken, error)
	// Tell records the spent amount and the amount in flight.
	//
	// Errors: ErrAllocationEnded.
	Report(ctx context.Context, l Allocation) error
	// Return returns a part of the unspent share to the counter, and returns the new share. It also
	// records like Tell.
	//
	// Errors: ErrAllocationEnded.
	Return(ctx context.Context, l Allocation, amount int64) (share int64, err error)
	// End ends a lease. Unused amounts return to the counter, even if the share is larger than the
	// owner believes. It succeeds if the lease is over.
	End(ctx context.Context, l Allocation) error
}
