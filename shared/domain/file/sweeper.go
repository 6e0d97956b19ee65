package file

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

// Sweeper deletes expired files and overdue pending files on one machine. In AWS, the table's TTL and stream do this.
type Sweeper struct {
	Store Retention
	Blobs interface {
		Blobs
		blob.Shelf
		Head(ctx context.Context, name string) (blob.Info, error)
	}
	Now func() time.Time
	// Settled reports whether the clock can be trusted for expiry. While it cannot, the sweeper deletes nothing. nil
	// means that it always can.
	Settled func() bool
	Logger  *slog.Logger
}

const (
	sweepEvery = 10 * time.Second
	sweepBatch = 100
)

func (s *Sweeper) Run(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Error("cannot sweep files", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Sweep deletes a file's bytes before its record. If it is interrupted, the next sweep still finds
// the record. Bytes without a record would be found only at the next startup.
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
			err := DeleteBytes(ctx, s.Blobs, f)
			if err == nil {
				err = s.Store.Forget(ctx, f.ID)
			}
			if err != nil {
				failures = append(failures, fmt.Errorf("delete the expired file %s: %w", f.ID, err))
			}
		}
		// The store would return the failed files again, so leave them to the next sweep.
		if len(files) < sweepBatch || len(failures) > 0 {
			return errors.Join(failures...)
		}
	}
}

// SweepUnknown sets aside blobs without a record and returns their number (see
// blob.SetAsideUnknown). Then it deletes thumbnails of files whose bytes are gone.
func (s *Sweeper) SweepUnknown(ctx context.Context) (blobs int, err error) {
	blobs, err = blob.SetAsideUnknown(ctx, s.Blobs, "files", s.Now, s.Store.KnownBlob)
	if err != nil {
		return blobs, err
	}
	return blobs, s.sweepThumbnails(ctx)
}

func (s *Sweeper) sweepThumbnails(ctx context.Context) error {
	for entry, err := range s.Blobs.Children(ctx, thumbnailPrefix) {
		if err != nil {
			return fmt.Errorf("list thumbnails: %w", err)
		}
		_, err := s.Blobs.Head(ctx, filePrefix+path.Base(entry.Name))
		if fault.Is(err, fault.NotFound) {
			err = s.Blobs.Delete(ctx, entry.Name)
		}
		if err != nil {
			return fmt.Errorf("sweep %s: %w", entry.Name, err)
		}
	}
	return nil
}
