package usage

import (
	"context"
	"time"
)

const (
	// directAttempts is the maximum number of attempts to add a record. directTime is the timeout
	// for all of them, because a caller waits.
	directAttempts = 3
	directTime     = 10 * time.Second
)

// Direct adds each record to the store before it returns. It is for a process that may be frozen
// after its response.
type Direct struct {
	store Store
	newID func() string
}

func NewDirect(store Store, newID func() string) *Direct { return &Direct{store, newID} }

// Record adds a record with a new id, so that a repeated attempt counts once. After an error the
// record may have been added.
func (d *Direct) Record(ctx context.Context, record Record) (err error) {
	// The usage counts even if the call is cancelled.
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
