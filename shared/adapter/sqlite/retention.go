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
	rows, err := s.db.lookup.QueryContext(ctx, overdueJobs, millis(now), limit)
	if err != nil {
		return nil, storeError("find overdue jobs", err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, storeError("find overdue jobs", err)
		}
		ids = append(ids, id)
	}
	return ids, storeError("find overdue jobs", rows.Err())
}

func (s *Jobs) Ended(ctx context.Context, before time.Time, after string, limit int) ([]job.Job, error) {
	rows, err := s.db.lookup.QueryContext(ctx, endedJobs, after, millis(before), limit)
	if err != nil {
		return nil, storeError("find ended jobs", err)
	}
	defer rows.Close()
	var jobs []job.Job
	for rows.Next() {
		j, err := scanJob(rows)
		if err != nil {
			return nil, storeError("find ended jobs", err)
		}
		jobs = append(jobs, j)
	}
	return jobs, storeError("find ended jobs", rows.Err())
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
