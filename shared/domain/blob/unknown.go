package blob

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Shelf is a blob store that can set blobs aside.
type Shelf interface {
	Children(ctx context.Context, prefix string) iter.Seq2[Entry, error]
	// SetAside hides a blob, or all blobs below a prefix, without deleting the bytes.
	SetAside(ctx context.Context, name string, now time.Time) (blobs int, err error)
}

// SetAsideUnknown sets aside the entries without a record directly below a prefix, and returns the number of blobs.
// Most of them come from interrupted uploads. Call it only at startup, or with a shelf that skips new blobs.
// Otherwise it would also set aside an upload that is stored but not yet recorded.
func SetAsideUnknown(ctx context.Context, shelf Shelf, prefix string, now func() time.Time,
	known func(ctx context.Context, name string) (bool, error)) (blobs int, err error) {
	for entry, err := range shelf.Children(ctx, prefix) {
		if err != nil {
			return blobs, fmt.Errorf("list %s: %w", prefix, err)
		}
		is, err := known(ctx, entry.Name)
		if err == nil && !is {
			var n int
			n, err = shelf.SetAside(ctx, entry.Name, now())
			blobs += n
		}
		if err != nil {
			return blobs, fmt.Errorf("sweep %s: %w", entry.Name, err)
		}
	}
	return blobs, nil
}
