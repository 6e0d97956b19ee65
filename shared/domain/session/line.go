package session

import (
	"context"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// LookEvery is how often an instance checks a queue in which its own clients wait. Together
	// with the call's time, a slot that is freed elsewhere is taken within a second.
	LookEvery = 750 * time.Millisecond
	// HereEvery is the age, by the store's time, at which a look renews an instance's sign of life
	// in a queue.
	HereEvery = 2 * time.Second
	// GoneAfter is the age of the sign of life at which the instance's tickets no longer count. A
	// crashed instance delays a queue no longer than that.
	GoneAfter = 6 * time.Second
	// TellEvery is how often a waiting client receives its place, even if unchanged
	// (docs/contract/realtime.md#the-line).
	TellEvery = time.Second
	// LongestLine limits a queue, whatever the tier says.
	LongestLine = 1000
)

var ErrNoTicket = fault.New(fault.NotFound, "The ticket is in no line.")

// Line is the state of an account's queue.
type Line struct {
	// Tickets are in order, the next one first. A ticket has the id of its future session.
	Tickets []Slot
	// Taken is the number of the account's open slots.
	Taken int
}

// Lines keeps the accounts' queues for sessions. The store draws a ticket's number, so no clock of
// an instance determines the order. A ticket belongs to its instance's epoch. It counts while the
// epoch is alive and the instance's last sign of life in this queue is within GoneAfter, by the
// store's time.
type Lines interface {
	// Join puts a ticket into its account's queue, which then has at most longest tickets, exactly
	// so under any concurrency. A number of 0 draws the next one; another number gives the ticket
	// back its former place. It returns the number. A Join that finds its ticket returns its
	// number. It is a sign of life.
	//
	// Errors: fault.Limited if the queue is full; fault.Conflict if the epoch is dead or unknown.
	Join(ctx context.Context, ticket Slot, number int64, longest int) (int64, error)

	// Look returns an account's queue. If the epoch has tickets in it, Look is also its sign of
	// life, with at most one write in HereEvery.
	Look(ctx context.Context, account, epoch string) (Line, error)

	// Redeem removes the ticket from the queue and takes its slot, if fewer tickets are before it
	// than slots are free under the limit (0 means no limit). It frees the slots of dead leases as
	// Take does. A Redeem that finds its own slot succeeds.
	//
	// Errors: fault.Limited if it is not the ticket's turn; fault.Conflict if its epoch is dead or
	// unknown; ErrNoTicket.
	Redeem(ctx context.Context, ticket Slot, limit int) error

	// Leave removes a ticket from its queue. It succeeds if the ticket does not exist.
	Leave(ctx context.Context, ticket Slot) error
}
