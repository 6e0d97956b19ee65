package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"cutroom/shared/domain/job"
)

const (
	// The inner query reads up to `walk` entries of the index.
	jobPage = "select " + recordColumns + `, job_request.body from
		(select id as place from job indexed by job_by_account
			where account = ?2 and id < ?3 order by id desc limit ?5)
		cross join job on job.id = place
		cross join job_request on job_request.job = place
		where (?6 = '' or model = ?6) and (?8 = '' or lane = ?8)
			and (?7 = '' or ?7 = case when completed_at is null and deadline <= ?1 then 'failed' else status end)
		order by place desc limit ?4`

	lastWalkedJob = `select id from job indexed by job_by_account
		where account = ? and id < ? order by id desc limit 1 offset ?`

	highestJob = "job_~" // sorts after every id

	// searchWalk is the maximum number of requests that one List reads for a search, because no index supports it.
	searchWalk = 500

	// pageBytes and searchBytes limit the bytes of requests that one List reads, because other
	// accounts' lists wait for it.
	pageBytes   = 1 << 20
	searchBytes = 4 << 20
)

// reversed changes a query so that the lowest id comes first.
var reversed = strings.NewReplacer("id < ?", "id > ?", " desc ", " asc ")

func (s *Jobs) List(ctx context.Context, account string, filter job.Filter, after string, limit int,
	now time.Time) (jobs []job.Job, next string, err error) {
	page, last := jobPage, lastWalkedJob
	if filter.OldestFirst {
		page, last = reversed.Replace(page), reversed.Replace(last)
	} else if after == "" {
		after = highestJob
	}
	tx, end, err := s.db.beginList(ctx, account)
	if err != nil {
		return nil, "", storeError("list jobs", err)
	}
	defer end()
	entries, rows, most := max(walk, limit), limit, pageBytes
	if filter.Search != "" {
		most = searchBytes
		// Search in Go, because SQLite ignores case only in ASCII.
		entries = max(searchWalk, limit)
		rows = entries
	}
	jobs, next, err = jobsOf(ctx, tx, filter, now, limit, most, page,
		millis(now), account, after, rows, entries, filter.Model, filter.Status, filter.Lane)
	if err != nil {
		return nil, "", storeError("list jobs", err)
	}
	if next != "" {
		return jobs, next, nil
	}
	if n := len(jobs); n > 0 && n == limit {
		return jobs, jobs[n-1].ID, nil
	}
	err = tx.QueryRowContext(ctx, last, account, after, entries-1).Scan(&next)
	if errors.Is(err, sql.ErrNoRows) {
		return jobs, "", nil
	}
	return jobs, next, storeError("list jobs", err)
}

// jobsOf returns up to limit jobs of the page that match the filter. If the requests that it reads have more than
// `most` bytes, it stops early, and next is the last id that it read.
func jobsOf(
	ctx context.Context, tx *sql.Tx, filter job.Filter, now time.Time, limit, most int, page string, parameters ...any,
) (jobs []job.Job, next string, err error) {
	rows, err := tx.QueryContext(ctx, page, parameters...)
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	for len(jobs) < limit && rows.Next() {
		j, bytes, err := scanSizedJob(rows)
		if err != nil {
			return nil, "", err
		}
		if j = j.At(now); filter.Matches(j) {
			jobs = append(jobs, j)
		}
		if most -= bytes; most < 0 {
			return jobs, j.ID, nil
		}
	}
	return jobs, "", rows.Err()
}
