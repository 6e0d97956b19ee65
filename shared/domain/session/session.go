// Package session counts realtime sessions exactly: an account never has more
// open than its tier allows, under any number of instances and connects
// (docs/contract/realtime.md#quota).
//
// An instance, which is one process that serves sessions, has one lease for all
// of them and renews it every RenewEvery. A lease's life is an epoch: after a
// restart, or when a lease was lost, a new one begins. A session has a slot of
// its account, which belongs to the instance's epoch.
//
// No wall clock is trusted. The instance fences itself: it serves no frame once
// FenceAfter has passed on its monotonic clock since its last successful
// renewal began. The store determines by its own time when a lease is TakeAfter
// old; the epoch is then dead and its slots are free. As TakeAfter is longer
// than FenceAfter, a slot is never served twice.
//
// Who finds no slot may wait in the account's line (see Lines).
package session

import (
	"context"
	"cutroom/shared/domain/fault"
	"time"
)

const (
	// RenewEvery is how often an instance renews its lease: one write for all
	// of its sessions.
	RenewEvery = 15 * time.Second
	// FenceAfter is how long an instance serves after the beginning of its last
	// successful renewal.
	FenceAfter = 30 * time.Second
	// TakeAfter is how old, by the store's time, the last renewal of an epoch
	// is when its slots may be taken. A crashed instance's sessions are counted
	// for at most 45 s (docs/contract/limits.md#realtime-limits).
	TakeAfter = 40 * time.Second
)

var (
	// ErrLeaseOver is returned to whoever serves under a lease that is over.
	ErrLeaseOver = fault.New(fault.Conflict, "The lease is over.")
	// ErrNoSlot is returned for a session beyond the account's limit.
	ErrNoSlot = fault.New(fault.Limited, "Concurrent session limit reached.")
)

// Slot is one open session of an account.
type Slot struct {
	// ID is the session's.
	ID      string
	Account string
	// Epoch is the lease that the slot belongs to.
	Epoch string
}

// Store keeps leases and slots. The suite in sessiontest specifies it.
type Store interface {
	// Begin starts a lease under a new epoch, which the caller drew and which
	// is unique. A Begin that is repeated for its own live epoch is a renewal. The
	// address is where other instances reach this one; it may be empty.
	//
	// Errors: fault.Conflict when the epoch is dead.
	Begin(ctx context.Context, epoch, address string) error

	// Address returns the address of a lease, empty if it began without one.
	//
	// Errors: fault.Conflict when the epoch is dead or unknown, or its last renewal
	// is TakeAfter old.
	Address(ctx context.Context, epoch string) (string, error)

	// Renew keeps the lease alive: one write, however many sessions.
	//
	// Errors: fault.Conflict when the epoch is dead or unknown; it never comes
	// back.
	Renew(ctx context.Context, epoch string) error

	// End ends a lease, frees its slots at once and takes its tickets out of their
	// lines; its epoch is then dead. It does not fail if there is no such lease.
	End(ctx context.Context, epoch string) error

	// Take takes a slot. The account then has at most limit open slots (0 is no
	// limit), exactly so under any concurrency. Slots of leases that are
	// TakeAfter old by the store's time are freed first and their epochs marked
	// as dead, on the condition that they were not renewed meanwhile. A Take
	// that finds its own slot succeeds.
	//
	// Errors: fault.Limited when no slot is free; fault.Conflict when the
	// slot's own epoch is dead or unknown. While others wait in the account's line
	// no slot is free for a Take with a limit: who comes does not overtake who waits.
	Take(ctx context.Context, slot Slot, limit int) error

	// Free frees a slot. It does not fail, and changes nothing, if the slot is
	// free already or was taken by another.
	Free(ctx context.Context, slot Slot) error

	// Active returns the number of the account's open slots, without those of
	// leases that are TakeAfter old. It reflects every Take and Free that has
	// returned.
	Active(ctx context.Context, account string) (int, error)

	Lines
}
