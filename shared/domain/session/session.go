// Package session counts realtime sessions exactly: an account never has more open than its tier
// allows, under any number of instances and connects (docs/contract/realtime.md#quota).
//
// An instance, which is one process that serves sessions, has one lease for all of them and renews
// it every RenewEvery. A lease lives for one epoch: after a restart, or after losing the lease, a
// new epoch begins. A session has a slot of its account, which belongs to the instance's epoch.
//
// No wall clock is trusted. An instance stops serving frames once FenceAfter has passed on its
// monotonic clock since its last successful renewal started. The store determines by its own time
// when a lease is TakeAfter old; the epoch is then dead and its slots are free. TakeAfter is longer
// than FenceAfter, so a slot is never served twice.
//
// A client that finds no free slot may wait in the account's queue, where its ticket has a number
// that the store draws. Its instance renews all of its tickets in the queue by one write every
// RenewTicketsEvery. The tickets of an instance that crashed expire.
package session

import (
	"context"
	"cutroom/shared/domain/fault"
	"time"
)

const (
	// RenewEvery is how often an instance renews its lease: one write for all of its sessions.
	RenewEvery = 15 * time.Second
	// FenceAfter is how long an instance serves after its last successful renewal started.
	FenceAfter = 30 * time.Second
	// TakeAfter is the age, by the store's time, of an epoch's last renewal at which its slots may
	// be taken. A crashed instance's sessions are counted for at most 45 s
	// (docs/contract/limits.md#realtime-limits).
	TakeAfter = 40 * time.Second
)

var (
	// ErrLeaseOver is returned to an instance whose lease is over.
	ErrLeaseOver = fault.New(fault.Conflict, "The lease is over.")
	ErrNoSlot    = fault.New(fault.Limited, "Concurrent session limit reached.")
)

// Slot is one open session of an account.
type Slot struct {
	ID      string
	Account string
	Epoch   string
}

// Store keeps leases and slots. The suite in sessiontest specifies it.
type Store interface {
	// Begin starts a lease under a new, unique epoch. A repeated Begin for a live epoch is a renewal.
	// The address is this instance's for other instances; it may be empty.
	//
	// Errors: fault.Conflict if the epoch is dead.
	Begin(ctx context.Context, epoch, address string) error

	// Address returns the address of a lease, or "".
	//
	// Errors: fault.Conflict if the epoch is dead or unknown, or its last renewal is TakeAfter old.
	Address(ctx context.Context, epoch string) (string, error)

	// Renew keeps the lease alive: one write, however many sessions.
	//
	// Errors: fault.Conflict when the epoch is dead or unknown; it never comes back.
	Renew(ctx context.Context, epoch string) error

	// End ends a lease and frees its slots at once; its epoch is then dead. It does
	// not fail if there is no such lease.
	End(ctx context.Context, epoch string) error

	// Take takes a slot. The account then has at most limit open slots (0 is no
	// limit), exactly so under any concurrency. Slots of leases that are
	// TakeAfter old by the store's time are freed first and their epochs marked
	// as dead, on the condition that they were not renewed since. A Take
	// that finds its own slot succeeds. A Take with a limit respects the account's
	// queue, see Admits, and removes the ticket with the slot's id from it.
	//
	// Errors: fault.Limited when no slot is free, or it is another's turn;
	// fault.Conflict when the slot's own epoch is dead or unknown.
	Take(ctx context.Context, slot Slot, limit int) error

	// Free frees a slot. It does nothing if the slot is already free or has another owner.
	Free(ctx context.Context, slot Slot) error

	// Active returns the number of the account's open slots, without slots of leases that are
	// TakeAfter old. It reflects every Take and Free that has returned.
	Active(ctx context.Context, account string) (int, error)

	// RenewTickets replaces the holder's tickets in the account's queue. Own is in
	// order of the numbers, with 0 last. The tickets count for TicketLife from then,
	// by the store's time. Each 0 becomes a number higher than all in the queue. A
	// new ticket is left out if the queue is too long for it, exactly so under any
	// concurrency. RenewTickets writes only to change the tickets, or if they are
	// RenewTicketsEvery old. It returns the tickets that count, in order, and the
	// number of open slots.
	RenewTickets(ctx context.Context, account, holder string, own []Ticket) (queue []Ticket, taken int, err error)
}
