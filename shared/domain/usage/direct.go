package usage

import (
	"context"
	"time"
)

const (
	directAttempts = 3
	directTime     = 10 * time.Second
)

// Direct adds each record before it returns. It is for a process that may be frozen after its
// response.
type Direct struct {
	store Store
	newID func() string
}

func NewDirect(store Store, newID func() string) *Direct { return &Direct{store, newID} }

// Record uses one id, so that a repeated attempt counts once. After an error the record may have
// been added.
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
