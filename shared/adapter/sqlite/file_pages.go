package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/file"
)

// walk is the maximum number of index entries that one List scans, because expired files stay in
// the index until a sweep.
const walk = 2000

const (
	// The inner query reads only the index. The outer query reads only the files of the page.
	filePage = "select " + fileColumns + ` from
		(select rowid as number, id as place, expires_at as until from file indexed by file_stored
			where account = ?2 and state = 'stored' and id < ?3 order by id desc limit ?5)
		cross join file on file.rowid = number
		where until is null or until > ?1 order by place desc limit ?4`

	lastWalked = `select id from file indexed by file_stored
		where account = ? and state = 'stored' and id < ? order by id desc limit 1 offset ?`

	firstPlace = "file_~" // sorts after every id
)

func (s *Files) List(ctx context.Context, account, after string, limit int,
	now time.Time) (files []file.File, next string, err error) {
	if after == "" {
		after = firstPlace
	}
	tx, end, err := s.db.beginList(ctx, account)
	if err != nil {
		return nil, "", storeError("list files", err)
	}
	defer end()
	entries := max(walk, limit)
	files, err = readAll(ctx, tx, "list files", scanFile, filePage, millis(now), account, after, limit, entries)
	if err != nil {
		return nil, "", err
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
