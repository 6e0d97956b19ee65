package session

import (
	"context"
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// LookEvery is how often an instance looks at a line in which clients of its
	// own wait: with the call itself, a slot that is freed elsewhere is taken
	// within a second.
	LookEvery = 750 * time.Millisecond
	// HereEvery is how old, by the store's time, the sign of an instance's life in
	// a line is when a look renews it.
	HereEvery = 2 * time.Second
	// GoneAfter is how old that sign is when the tickets of the instance no longer
	// count: an instance that crashed holds up a line for no longer.
	GoneAfter = 6 * time.Second
	// TellEvery is how often who waits is told their place, also when it has not
	// changed (docs/contract/realtime.md#the-line).
	TellEvery = time.Second
	// LongestLine is how many may wait in a line at most, whatever the tier says.
	LongestLine = 1000
)

// ErrNoTicket is returned for a ticket that is in no line.
var ErrNoTicket = fault.New(fault.NotFound, "The ticket is in no line.")

// Line is an account's line at one time.
type Line struct {
	// Tickets are those who wait, who is next first. A ticket has the id of the
	// session that it becomes.
	Tickets []Slot
	// Taken is the number of the account's open slots.
	Taken int
}

// Lines keeps the lines of accounts. A ticket has a number, which the store draws:
// no clock of an instance determines the order. A ticket belongs to its instance's
// epoch, and counts while the epoch is alive and the instance has given a sign of
// life in this line within GoneAfter, by the store's time.
type Lines interface {
	// Join puts a ticket into the line of its account, which then has at most
	// longest tickets, exactly so under any concurrency. A number of 0 draws the
	// next one; another is one that this ticket had before, and gives it back its
	// place. It returns the number. A Join that finds its ticket returns the number
	// that it has. It is a sign of life.
	//
	// Errors: fault.Limited when the line is full; fault.Conflict when the epoch is
	// dead or unknown.
	Join(ctx context.Context, ticket Slot, number int64, longest int) (int64, error)

	// Look returns the line of an account, and is a sign of life of the epoch there
	// if it has tickets in it: at most one write in HereEvery, however many.
	Look(ctx context.Context, account, epoch string) (Line, error)

	// Redeem takes the ticket out of the line and takes the slot of its name, if
	// fewer tickets are before it than slots are free of the limit (0 is none). It
	// frees the slots of dead leases as Take does. A Redeem that finds its own slot
	// succeeds.
	//
	// Errors: fault.Limited when it is not the ticket's turn; fault.Conflict when its
	// epoch is dead or unknown; ErrNoTicket.
	Redeem(ctx context.Context, ticket Slot, limit int) error

	// Leave takes a ticket out of its line. It does not fail if there is none.
	Leave(ctx context.Context, ticket Slot) error
}
