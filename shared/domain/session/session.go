// Package session counts realtime sessions exactly: with any number of instances and concurrent connects, an
// account never has more open sessions than its tier allows (docs/contract/realtime.md#quota).
//
// An instance is a process that serves sessions. It has one lease for all its sessions and renews
// it every RenewEvery. After a restart, or if the lease is lost, a new epoch starts. A session has
// one of its account's slots, and the slot belongs to the instance's epoch.
//
// Wall clocks are not trusted. An instance stops serving frames when FenceAfter has passed, on its monotonic
// clock, since its last successful renewal started. Once a lease is older than TakeAfter on the store's clock,
// the epoch is dead and its slots are free. TakeAfter is longer than FenceAfter, so a slot is never served twice.
//
// A client that finds no free slot may wait in the account's queue. Its ticket has a number from the store. Its
// instance renews all of its tickets in one write every RenewTicketsEvery. The tickets of a crashed instance expire.
package session

import (
	"context"
	"cutroom/shared/domain/fault"
	"time"
)

const (
	RenewEvery = 15 * time.Second // one write for all of an instance's sessions
	// FenceAfter is how long an instance may serve sessions after the start of its last successful renewal.
	FenceAfter = 30 * time.Second
	// TakeAfter is how old an epoch's last renewal must be, on the store's clock, before its slots may be taken.
	// The sessions of a crashed instance are counted for at most 45 s (docs/contract/limits.md#realtime-limits).
	TakeAfter = 40 * time.Second
)

var (
	ErrLeaseOver = fault.New(fault.Conflict, "The lease has ended.")
	ErrNoSlot    = fault.New(fault.Limited, "Concurrent session limit reached.")
)

type Slot struct {
	ID      string
	Account string
	Epoch   string
}

type Store interface {
	// Begin starts a lease under a new, unique epoch. Repeating Begin for a live epoch renews it.
	// Other instances reach this one at the address, which may be empty.
	//
	// Errors: fault.Conflict if the epoch is dead.
	Begin(ctx context.Context, epoch, address string) error

	// Address returns the address of the epoch's instance, or "" if the instance has no address.
	//
	// Errors: fault.Conflict if the epoch is dead or unknown, or its last renewal is older than TakeAfter.
	Address(ctx context.Context, epoch string) (string, error)

	// Errors: fault.Conflict if the epoch is dead or unknown. A dead epoch stays dead.
	Renew(ctx context.Context, epoch string) error

	// End frees the lease's slots immediately. The epoch is then dead. The lease need not exist.
	End(ctx context.Context, epoch string) error

	// Take takes a slot unless the account's open slots would then exceed the limit (0 means no limit). The limit is
	// exact under concurrency. First, Take frees the slots of leases older than TakeAfter on the store's clock and
	// marks their epochs as dead, unless they have just been renewed. Taking the same slot again succeeds. With a
	// limit, Take respects the account's queue (see Admits) and removes the ticket with the slot's id from it.
	//
	// Errors: fault.Limited if no slot is free, or another ticket is first; fault.Conflict if the slot's own epoch is
	// dead or unknown.
	Take(ctx context.Context, slot Slot, limit int) error

	// Free frees a slot. It does nothing if the slot is already free or has another owner.
	Free(ctx context.Context, slot Slot) error

	// Active counts the account's open slots, ignoring leases older than TakeAfter. It reflects every Take and Free
	// that has returned.
	Active(ctx context.Context, account string) (int, error)

	// RenewTickets replaces the holder's tickets in the account's queue. The list own is sorted by number, with zeros
	// last. Each 0 is replaced with a number higher than any in the queue. A new ticket is dropped if the queue is
	// too long for it, even if calls are concurrent. RenewTickets writes only if the tickets have changed, or
	// RenewTicketsEvery has passed since the last renewal. It returns the valid tickets in order, and the number of
	// open slots.
	RenewTickets(ctx context.Context, account, holder string, own []Ticket) (queue []Ticket, taken int, err error)
}
