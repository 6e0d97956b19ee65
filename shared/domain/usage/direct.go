package usage

import (
	"context"
	"time"
)

const (
	// directAttempts is how often adding a record is tried, and directTime
	// bounds all attempts together: a caller waits for the end of its answer.
	directAttempts = 3
	directTime     = 10 * time.Second
)

// Direct adds each record to the store before it returns, for a process that
// may be frozen once it has answered.
type Direct struct {
	store Store
	newID func() string
}

// NewDirect returns a Direct; newID returns an id that no other record has.
func NewDirect(store Store, newID func() string) *Direct { return &Direct{store, newID} }

// Record adds a record under a new id, so that an attempt whose result was lost
// can be repeated and counts once.
//
// Errors: the store's, from the last attempt; the record may have been added.
func (d *Direct) Record(ctx context.Context, record Record) (err error) {
	// What was used counts even if the call is cancelled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), directTime)
	defer cancel()
	record.ID = d.newID()
	for range directAttempts {
		if err = d.store.Add(ctx, []Record{record}); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}
