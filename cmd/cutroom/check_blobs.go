package main

import (
	"context"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// unknownTime is how long files without a record are kept.
const unknownTime = 7 * 24 * time.Hour

// checkBlobs compares the blobs with the records. It sets aside blobs without a record, mostly left
// by interrupted uploads, and counts missing blobs. The time it takes grows with the number of
// blobs, so it runs while the server serves requests.
func (s *server) checkBlobs(ctx context.Context) {
	defer s.blobs.ForgetNewcomers()
	unknown, err := s.setAsideUnknown(ctx, s.sweeper, s.files, s.ended)
	if unknown > 0 {
		s.logger.Warn("set aside files without a record; cutroom doctor --repair lists them", "blobs", unknown,
			"kept_for", unknownTime)
	}
	if err != nil && ctx.Err() == nil {
		s.logger.Error("cannot look for files without a record", "error", err)
	}
	s.blobs.ForgetNewcomers()
	switch missing, err := s.countMissing(ctx, s.clock.Now()); {
	case ctx.Err() != nil:
	case err != nil:
		s.logger.Error("cannot look for missing files", "error", err)
	case missing > 0:
		s.logger.Error("files or results in the database are missing; restore the blobs folder from a backup",
			"blobs", missing)
	}
}

// countMissing returns the number of blobs that records refer to but that do not exist.
func (s storage) countMissing(ctx context.Context, now time.Time) (missing int, err error) {
	for name, err := range s.records.Expected(ctx, now, now.Add(-job.DefaultResultAge)) {
		if err != nil {
			return missing, err
		}
		if _, err := s.blobs.Head(ctx, name); fault.Is(err, fault.NotFound) {
			missing++
		} else if err != nil {
			return missing, err
		}
	}
	return missing, nil
}
