package sqlite

import (
	"context"
	"time"

	"cutroom/shared/domain/job"
)

const (
	overdueJobs = "select id from job where completed_at is null and deadline <= ? order by deadline limit ?"
	endedJobs   = selectJob + "where job.id > ? and completed_at < ? order by job.id limit ?"
)

func (s *Jobs) Overdue(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return readAll(ctx, s.db.lookup, "find overdue jobs", func(r row) (id string, err error) {
		err = r.Scan(&id)
		return id, err
	}, overdueJobs, millis(now), limit)
}

func (s *Jobs) Ended(ctx context.Context, before time.Time, after string, limit int) ([]job.Job, error) {
	return readAll(ctx, s.db.lookup, "find ended jobs", scanJob, endedJobs, after, millis(before), limit)
}

func (s *Jobs) Forget(ctx context.Context, id string) error {
	return s.db.writeAnyway(ctx, "forget a job", func(ctx context.Context, tx *transaction) error {
		if _, err := tx.ExecContext(ctx, "delete from reservation where id = ?", id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "delete from job where id = ? and completed_at is not null", id)
		return err
	})
}

func (s *Jobs) Known(ctx context.Context, id string) (bool, error) {
	known, err := known(ctx, s.db.reader, id)
	return known, storeError("look up a job", err)
}
