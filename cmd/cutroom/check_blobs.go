package main

import (
	"context"
	"time"
)

// unknownTime is how long files without a record are kept.
const unknownTime = 7 * 24 * time.Hour

// checkBlobs sets aside blobs without a record, mostly left by interrupted uploads. The time it takes grows with the
// number of blobs, so it runs while the server serves requests.
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
}
