package job

import (
	"context"
	"fmt"

	"cutroom/shared/domain/fault"
)

// Purge deletes an ended job. It deletes the record last, so that a failed purge can be repeated.
// Then it deletes thumbnails that a worker stored during the purge. A worker that stores them later
// finds no record and deletes them itself.
//
// Errors: fault.Conflict if the job has not ended.
func (s *Service) Purge(ctx context.Context, j Job, blobs interface {
	Delete(ctx context.Context, name string) error
}) error {
	if !j.Status.Terminal() {
		return fault.New(fault.Conflict, "The job is %s. Cancel it first.", j.Status)
	}
	thumbnails := j.ThumbnailsBlob()
	names := []string{thumbnails}
	if j.Result != nil {
		names = append(names, j.Result.Blob)
	}
	for _, input := range j.Request.Inputs {
		names = append(names, input.Blob)
	}
	for _, name := range names {
		if err := blobs.Delete(ctx, name); err != nil {
			return fmt.Errorf("job: purge %s: %w", j.ID, err)
		}
	}
	// A crashed run may have left a preview or a result on the disk, which no sweep would find without
	// the record.
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
