package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/file"
)

// walk is how many entries of an account's index one List passes over at most:
// it bounds a read among files that have expired and were not swept yet.
const walk = 2000

const (
	// The inner query walks the index alone; only files of the page are read.
	filePage = "select " + fileColumns + ` from
		(select rowid as number, id as place, expires_at as until from file indexed by file_stored
			where account = ?2 and state = 'stored' and id < ?3 order by id desc limit ?5)
		cross join file on file.rowid = number
		where until is null or until > ?1 order by place desc limit ?4`

	lastWalked = `select id from file indexed by file_stored
		where account = ? and state = 'stored' and id < ? order by id desc limit 1 offset ?`

	// firstPlace sorts after every id.
	firstPlace = "file_~"
)

// List gives an account's files, newest first, at most limit, beginning after
// the file with the id; an empty id begins with the newest. It may give fewer,
// and none, while more follow: next is the id to go on from, and empty when
// nothing follows.
func (s *Files) List(ctx context.Context, account, after string, limit int, now time.Time) (files []file.File, next string, err error) {
	if after == "" {
		after = firstPlace
	}
	// Both reads see one state of the records, so that what is walked is what
	// was listed.
	tx, err := s.db.reader.BeginTx(ctx, nil)
	if err != nil {
		return nil, "", storeError("list files", err)
	}
	defer tx.Rollback()
	entries := max(walk, limit)
	files, err = filesOf(tx.QueryContext(ctx, filePage, millis(now), account, after, limit, entries))
	if err != nil {
		return nil, "", storeError("list files", err)
	}
	if n := len(files); n > 0 && n == limit {
		return files, files[n-1].ID, nil
	}
	err = tx.QueryRowContext(ctx, lastWalked, account, after, entries-1).Scan(&next)
	if errors.Is(err, sql.ErrNoRows) {
		return files, "", nil
	}
	return files, next, storeError("list files", err)
}

// filesOf reads the answer of a query of fileColumns.
func filesOf(rows *sql.Rows, err error) ([]file.File, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var files []file.File
	for rows.Next() {
		f, err := scanFile(rows)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, rows.Err()
}
