package sqlite

import (
	"context"
	"iter"
	"time"
)

// expectedBlobs are the blobs of files that requests may see, and the results of
// jobs that ended after the second time.
const expectedBlobs = `select blob from file where ` + current + `
	union all select json_extract(result, '$.blob') from job where status = 'completed' and completed_at > ?2`

// Expected returns the names of the blobs that must exist according to the records:
// those of files that requests may see at now, and results of jobs that ended after
// endedAfter.
func (db *DB) Expected(ctx context.Context, now, endedAfter time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		rows, err := db.reader.QueryContext(ctx, expectedBlobs, millis(now), millis(endedAfter))
		if err != nil {
			yield("", storeError("list the blobs of records", err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				yield("", storeError("list the blobs of records", err))
				return
			}
			if !yield(name, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield("", storeError("list the blobs of records", err))
		}
	}
}
