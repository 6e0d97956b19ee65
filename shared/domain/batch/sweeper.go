package batch

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"

	"cutroom/shared/domain/blob"
)

// ChunkBlob returns a chunk's blob name. run identifies the run that writes the chunk, so that two
// concurrent runs never write the same blob.
func ChunkBlob(id string, number int, run string) string {
	return blobPrefix + "/" + id + "/chunk-" + strconv.Itoa(number) + "-" + run
}

type Sweeper struct {
	Store Retention
	Blobs interface {
		DeleteAll(ctx context.Context, prefix string) error
	}
	Storage Storage
	// Shelf is nil if the blob store deletes unknown blobs itself.
	Shelf blob.Shelf
	Now   func() time.Time
	// Settled reports whether the clock can be trusted for expiry. nil means that it always can.
	Settled func() bool
}

func (s *Sweeper) Sweep(ctx context.Context) error {
	const most = 100
	ended, err := s.Store.Finished(ctx, most)
	if err != nil {
		return fmt.Errorf("list ended batches: %w", err)
	}
	var failures []error
	for _, b := range ended {
		if err := s.clear(ctx, b); err != nil {
			failures = append(failures, fmt.Errorf("clear batch %s: %w", b.ID, err))
		}
	}
	if s.Settled == nil || s.Settled() {
		failures = append(failures, s.Store.Forget(ctx, s.Now().Add(-KeepRecord)))
	}
	return errors.Join(failures...)
}

// clear deletes a batch's blobs and releases their storage. If it is interrupted by a crash, all steps are repeated.
func (s *Sweeper) clear(ctx context.Context, b Batch) error {
	if err := s.Blobs.DeleteAll(ctx, blobPrefix+"/"+b.ID); err != nil {
		return err
	}
	if err := s.Storage.Release(ctx, b); err != nil {
		return err
	}
	return s.Store.Cleared(ctx, b.ID)
}

// SweepUnknown sets aside the blobs that belong to no batch record and returns their number (see
// blob.SetAsideUnknown).
func (s *Sweeper) SweepUnknown(ctx context.Context) (blobs int, err error) {
	return blob.SetAsideUnknown(ctx, s.Shelf, blobPrefix, s.Now, func(ctx context.Context, name string) (bool, error) {
		return s.Store.Known(ctx, path.Base(name))
	})
}

func Owner(blobName string) (id string, ok bool) {
	if folder := path.Dir(blobName); path.Dir(folder) == blobPrefix {
		return path.Base(folder), true
	}
	if path.Dir(blobName) == blobPrefix {
		return path.Base(blobName), true
	}
	return "", false
}
