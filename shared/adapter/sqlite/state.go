package sqlite

import (
	"context"
	"time"

	"cutroom/shared/domain/job"
)

// The time that Open takes depends only on the number of open jobs.
func (s *Jobs) Open(ctx context.Context) ([]job.OpenJobs, error) {
	return readAll(ctx, s.db.reader, "count open jobs", func(r row) (job.OpenJobs, error) {
		var (
			open   job.OpenJobs
			oldest int64
		)
		err := r.Scan(&open.Lane, &open.Status, &open.Count, &oldest)
		open.Oldest = time.UnixMilli(oldest)
		return open, err
	}, "select lane, status, count(*), min(created_at) from job where completed_at is null group by lane, status")
}

func (f *Files) StoredBytes(ctx context.Context) (bytes int64, err error) {
	err = f.db.reader.QueryRowContext(ctx, "select coalesce(sum(bytes), 0) from storage").Scan(&bytes)
	return bytes, storeError("add up the stored bytes", err)
}

func (s *Sessions) Open(ctx context.Context) (count int, err error) {
	boot, _, stale := s.moment()
	err = s.db.reader.QueryRowContext(ctx,
		"select count(*) from session_slot join session_lease using (epoch) where not "+staleLease, boot, stale).Scan(&count)
	return count, storeError("count sessions", err)
}
