package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

type SweptBlobs interface {
	blob.Shelf
	Delete(ctx context.Context, name string) error
	DeleteAll(ctx context.Context, prefix string) error
}

// Sweeper ends overdue jobs on one machine, deletes the inputs of ended jobs, and deletes expired results and
// records. It does not delete blobs without a record but sets them aside, because the record may have been lost.
type Sweeper struct {
	Store interface {
		Store
		Retention
	}
	Blobs SweptBlobs
	Now   func() time.Time
	// Settled reports whether the clock can be trusted for expiry. While it cannot, the sweeper deletes nothing. nil
	// means that it always can.
	Settled              func() bool
	Logger               *slog.Logger
	ResultAge, RecordAge time.Duration
}

const (
	// overdueEvery is how often the sweeper ends overdue jobs that no client reads.
	overdueEvery = 5 * time.Second
	sweepEvery   = time.Minute
	// uploadAge is how long a submission may continue after its last file was stored.
	uploadAge  = 24 * time.Hour
	sweepBatch = 100
)

func (s *Sweeper) Run(ctx context.Context) {
	if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
		s.Logger.Error("cannot sweep jobs", "error", err)
	}
	overdue := time.NewTicker(overdueEvery)
	defer overdue.Stop()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-overdue.C:
			err = s.Expire(ctx)
		case <-sweep.C:
			err = s.Sweep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("cannot sweep jobs", "error", err)
		}
	}
}

func (s *Sweeper) Expire(ctx context.Context) error {
	for {
		now := s.Now()
		ids, err := s.Store.Overdue(ctx, now, sweepBatch)
		if err != nil {
			return fmt.Errorf("list overdue jobs: %w", err)
		}
		for _, id := range ids {
			if _, err := s.Store.Expire(ctx, id, now); err != nil && !fault.Is(err, fault.NotFound) {
				return fmt.Errorf("expire job %s: %w", id, err)
			}
		}
		if len(ids) < sweepBatch {
			return nil
		}
	}
}

// SweepUnknown sets aside job blobs without a record (see blob.SetAsideUnknown).
func (s *Sweeper) SweepUnknown(ctx context.Context) (blobs int, err error) {
	return blob.SetAsideUnknown(ctx, s.Blobs, "jobs", s.Now, func(ctx context.Context, name string) (bool, error) {
		return s.Store.Known(ctx, path.Base(name))
	})
}

// Sweep deletes blobs that ended jobs no longer need, and records that have expired.
func (s *Sweeper) Sweep(ctx context.Context) error {
	if s.Settled != nil && !s.Settled() {
		return nil
	}
	var failures []error
	for entry, err := range s.Blobs.Children(ctx, "jobs") {
		if err == nil {
			err = s.sweepJob(ctx, entry)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("sweep %s: %w", entry.Name, err))
		}
	}
	if err := s.forget(ctx); err != nil {
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// sweepJob deletes a job's blobs except for thumbnails and a result that has not expired. A folder
// without a job record belongs to an upload in progress, or is the empty folder of a rejected job.
func (s *Sweeper) sweepJob(ctx context.Context, folder blob.Entry) error {
	id := path.Base(folder.Name)
	j, err := s.Store.Get(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound) && s.Now().Sub(folder.StoredAt) > uploadAge:
		blobs, err := s.Blobs.SetAside(ctx, Folder(id), s.Now())
		if err == nil && blobs > 0 {
			s.Logger.Warn("blobs of a job without a record were set aside", "job", id, "blobs", blobs)
		}
		return err
	case fault.Is(err, fault.NotFound), err == nil && !j.Status.Terminal():
		return nil
	}
	if err != nil {
		return err
	}
	if j.Result == nil || !s.Now().Before(j.ResultExpiry(s.ResultAge)) {
		return s.Blobs.DeleteAll(ctx, Folder(id))
	}
	kept := []string{j.Result.Blob, j.ThumbnailsBlob()}
	for entry, err := range s.Blobs.Children(ctx, Folder(id)) {
		if err == nil && !slices.Contains(kept, entry.Name) {
			err = s.Blobs.Delete(ctx, entry.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Sweeper) forget(ctx context.Context) error {
	for after := ""; ; {
		jobs, err := s.Store.Ended(ctx, s.Now().Add(-s.RecordAge), after, sweepBatch)
		if err != nil {
			return fmt.Errorf("list old jobs: %w", err)
		}
		for _, j := range jobs {
			if err := s.Blobs.DeleteAll(ctx, Folder(j.ID)); err != nil {
				return fmt.Errorf("delete the blobs of job %s: %w", j.ID, err)
			}
			if err := s.Store.Forget(ctx, j.ID); err != nil {
				return fmt.Errorf("forget job %s: %w", j.ID, err)
			}
			after = j.ID
		}
		if len(jobs) < sweepBatch {
			return nil
		}
	}
}
