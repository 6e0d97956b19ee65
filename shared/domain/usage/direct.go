package usage

import (
	"context"
	"time"
)

const (
	directAttempts = 3
	directTime     = 10 * time.Second
)

// Direct adds each record to the store before it returns. It is for processes that may be frozen after responding.
type Direct struct {
	store Store
	newID func() string
}

func NewDirect(store Store, newID func() string) *Direct { return &Direct{store, newID} }

// Record retries with the same id, so that the record counts only once. If Record returns an error, the record may
// still have been added.
func (d *Direct) Record(ctx context.Context, record Record) (err error) {
	// Usage counts even if the call is cancelled.
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
