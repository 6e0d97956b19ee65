package sqlite

import (
	"context"
	"iter"
	"time"

	"cutroom/shared/domain/job"
)

// expectedPage is the maximum number of rows in one read. The caller may be slow, and a read that
// stays open prevents SQLite from resetting its write-ahead log.
const expectedPage = 1000

// Each query returns a row's key, its blob, and whether the blob must exist.
const (
	expectedFiles = `select rowid, blob, ` + current + ` from file where rowid > ?3 order by rowid limit ?4`

	expectedResults = `select id, coalesce(json_extract(result, '$.blob'), ''), status = 'completed' and completed_at > ?2
			and coalesce(completed_at + 1000 * (select json_extract(cast(body as text), '$.options.` + job.ResultTTL + `')
				from job_request where job_request.job = job.id) > ?1, 1)
		from job where id > ?3 order by id limit ?4`
)

// Expected returns the names of blobs that must exist: blobs of files visible at the given time, and results of jobs
// that ended after endedAfter. It may miss blobs that are stored while it runs.
func (db *DB) Expected(ctx context.Context, now, endedAfter time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, part := range []struct {
			query string
			first any
		}{{expectedFiles, 0}, {expectedResults, ""}} {
			for place := part.first; place != nil; {
				names, next, err := db.expected(ctx, part.query, millis(now), millis(endedAfter), place)
				if err != nil {
					yield("", storeError("list the blobs of records", err))
					return
				}
				for _, name := range names {
					if !yield(name, nil) {
						return
					}
				}
				place = next
			}
		}
	}
}

func (db *DB) expected(ctx context.Context, query string, now, endedAfter int64, place any) (
	names []string, next any, err error,
) {
	rows, err := db.reader.QueryContext(ctx, query, now, endedAfter, place, expectedPage)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	read := 0
	for ; rows.Next(); read++ {
		var (
			name string
			must bool
		)
		if err := rows.Scan(&place, &name, &must); err != nil {
			return nil, nil, err
		}
		if must {
			names = append(names, name)
		}
	}
	if read < expectedPage {
		place = nil
	}
	return names, place, rows.Err()
}
