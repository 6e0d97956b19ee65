package job

import (
	"context"
	"errors"
	"fmt"

	"cutroom/shared/domain/fault"
)

type deleter interface {
	Delete(ctx context.Context, name string) error
}

func (j Job) DeleteInputs(ctx context.Context, blobs deleter) error {
	var failures []error
	for _, input := range j.Request.Inputs {
		failures = append(failures, blobs.Delete(ctx, input.Blob))
	}
	return errors.Join(failures...)
}

// Purge deletes an ended job. It deletes the record after the blobs, so that a failed purge can be
// repeated. After that, it deletes thumbnails that a worker stored during the purge. A worker that
// stores thumbnails later finds no record and deletes them itself.
//
// Errors: fault.Conflict if the job has not ended.
func (s *Service) Purge(ctx context.Context, j Job, blobs deleter) error {
	if !j.Status.Terminal() {
		return fault.New(fault.Conflict, "The job is %s. Cancel it first.", j.Status)
	}
	thumbnails := j.ThumbnailsBlob()
	names := []string{thumbnails}
	if j.Result != nil {
		names = append(names, j.Result.Blob)
	}
	if err := j.DeleteInputs(ctx, blobs); err != nil {
		return fmt.Errorf("job: purge %s: %w", j.ID, err)
	}
	for _, name := range names {
		if err := blobs.Delete(ctx, name); err != nil {
			return fmt.Errorf("job: purge %s: %w", j.ID, err)
		}
	}
	// A crashed run may have left a preview or a result on disk. No sweep would find it without the record.
	if folders, ok := blobs.(interface {
		DeleteAll(ctx context.Context, prefix string) error
	}); ok {
		if err := folders.DeleteAll(ctx, Folder(j.ID)); err != nil {
			return fmt.Errorf("job: purge %s: %w", j.ID, err)
		}
	}
	if err := s.config.Store.Forget(ctx, j.ID); err != nil {
		return fmt.Errorf("job: purge %s: %w", j.ID, err)
	}
	if err := blobs.Delete(ctx, thumbnails); err != nil {
		return fmt.Errorf("job: purge %s: delete the thumbnails: %w", j.ID, err)
	}
	return nil
}
