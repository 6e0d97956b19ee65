package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/job"
)

const (
	// The inner query reads only the index, at most walk entries of it.
	jobPage = "select " + recordColumns + `, '{}' from
		(select id as place from job indexed by job_by_account
			where account = ?2 and id < ?3 order by id desc limit ?5)
		cross join job on job.id = place
		where (?6 = '' or model = ?6)
			and (?7 = '' or ?7 = case when completed_at is null and deadline <= ?1 then 'failed' else status end)
		order by place desc limit ?4`

	lastWalkedJob = `select id from job indexed by job_by_account
		where account = ? and id < ? order by id desc limit 1 offset ?`

	// highestJob sorts above every id.
	highestJob = "job_~"
)

// List returns at most limit of an account's jobs that match the filter, as they
// are at now and without their requests, highest id first, starting below the id
// after. It may return fewer, even none, while more follow: next is the id to
// continue from, and empty if nothing follows.
func (s *Jobs) List(ctx context.Context, account string, filter job.Filter, after string, limit int,
	now time.Time) (jobs []job.Job, next string, err error) {
	if after == "" {
		after = highestJob
	}
	// Both reads see the same snapshot, so that the entries scanned are those
	// listed.
	tx, err := s.db.reader.BeginTx(ctx, nil)
	if err != nil {
		return nil, "", storeError("list jobs", err)
	}
	defer tx.Rollback()
	entries := max(walk, limit)
	rows, err := tx.QueryContext(ctx, jobPage, millis(now), account, after, limit, entries, filter.Model, filter.Status)
	if err != nil {
		return nil, "", storeError("list jobs", err)
	}
	defer rows.Close()
	for rows.Next() {
		j, err := scanJob(rows)
		if err != nil {
			return nil, "", storeError("list jobs", err)
		}
		jobs = append(jobs, j.At(now))
	}
	if err := rows.Err(); err != nil {
		return nil, "", storeError("list jobs", err)
	}
	if n := len(jobs); n > 0 && n == limit {
		return jobs, jobs[n-1].ID, nil
	}
	err = tx.QueryRowContext(ctx, lastWalkedJob, account, after, entries-1).Scan(&next)
	if errors.Is(err, sql.ErrNoRows) {
		return jobs, "", nil
	}
	return jobs, next, storeError("list jobs", err)
}
