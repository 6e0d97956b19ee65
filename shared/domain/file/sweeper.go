package file

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"cutroom/shared/domain/blob"
)

// Sweeper does on one machine what a store's TTL and its stream do in AWS: it
// removes files that have expired and promises that were not kept. Bytes that no
// record knows it sets aside: the record may be what was lost.
type Sweeper struct {
	Store Retention
	Blobs interface {
		Blobs
		// Children gives what is directly below a prefix.
		Children(ctx context.Context, prefix string) iter.Seq2[blob.Entry, error]
		// SetAside takes a blob out of the store and keeps it elsewhere.
		SetAside(ctx context.Context, name string, now time.Time) (blobs int, err error)
	}
	Now func() time.Time
	// Settled reports whether the clock can be trusted to say what is old; nothing is
	// deleted while it cannot. Nil says that it always can.
	Settled func() bool
	Logger  *slog.Logger
}

const (
	// sweepEvery is how soon the bytes of an expired file go.
	sweepEvery = 10 * time.Second
	// sweepBatch bounds what one read of the store brings.
	sweepBatch = 100
)

// Run sweeps until the context ends. A failure is logged and tried again at the
// next turn.
func (s *Sweeper) Run(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Error("sweep files", "error", err)
		}
	}
}

// Sweep removes files that have expired and promises that were not kept. The
// bytes go first: a record without bytes is found again, bytes without a record
// only at the next start.
func (s *Sweeper) Sweep(ctx context.Context) error {
	if s.Settled != nil && !s.Settled() {
		return nil
	}
	for {
		files, err := s.Store.Ended(ctx, s.Now(), sweepBatch)
		if err != nil {
			return fmt.Errorf("list expired files: %w", err)
		}
		var failures []error
		for _, f := range files {
			err := s.Blobs.Delete(ctx, f.Blob)
			if err == nil {
				err = s.Store.Forget(ctx, f.ID)
			}
			if err != nil {
				failures = append(failures, fmt.Errorf("remove the expired file %s: %w", f.ID, err))
			}
		}
		// What failed is given again: it waits for the next turn.
		if len(files) < sweepBatch || len(failures) > 0 {
			return errors.Join(failures...)
		}
	}
}

// SweepUnknown sets bytes aside that no record knows, mostly uploads that a crash
// broke off, and gives the number of blobs. It is for the start, while no upload
// is under way.
func (s *Sweeper) SweepUnknown(ctx context.Context) (blobs int, err error) {
	for entry, err := range s.Blobs.Children(ctx, "files") {
		if err != nil {
			return blobs, fmt.Errorf("list the files' blobs: %w", err)
		}
		known, err := s.Store.KnownBlob(ctx, entry.Name)
		if err == nil && !known {
			var n int
			n, err = s.Blobs.SetAside(ctx, entry.Name, s.Now())
			blobs += n
		}
		if err != nil {
			return blobs, fmt.Errorf("sweep %s: %w", entry.Name, err)
		}
	}
	return blobs, nil
}
