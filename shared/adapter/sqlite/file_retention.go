package sqlite

import (
	"context"
	"time"

	"cutroom/shared/domain/file"
)

// endBatch is the maximum number of files that one statement marks as ended. With more, it would
// block other writers for too long on a slow disk.
const endBatch = 500

const (
	endOfAccount = `update file set state = 'ended' where rowid in (
		select rowid from file indexed by file_by_end
		where account = ?3 and state <> 'ended' and ends_at <= ?1 order by ends_at limit ?2)`

	// Going account by account lets this statement and endOfAccount share an index.
	endOfAll = `update file set state = 'ended' where rowid in (
		select file.rowid from storage cross join file indexed by file_by_end
		on file.account = storage.account and state <> 'ended' and ends_at <= ?1 limit ?2)`

	endedFiles = "select " + fileColumns + " from file indexed by file_ended where state = 'ended' order by id limit ?"
)

// endFiles marks at most endBatch expired files as ended and returns how many.
func endFiles(ctx context.Context, tx *transaction, which string, now time.Time, account ...any) (int64, error) {
	changed, err := tx.ExecContext(ctx, which, append([]any{millis(now), endBatch}, account...)...)
	if err != nil {
		return 0, err
	}
	return changed.RowsAffected()
}

// Ended releases expired reservations and returns expired files. It marks all of them before it
// returns the first, so that requests no longer see a file when its bytes are deleted.
func (s *Files) Ended(ctx context.Context, now time.Time, limit int) ([]file.File, error) {
	for ended := int64(endBatch); ended == endBatch; {
		err := s.db.writeAnyway(ctx, "end files", func(ctx context.Context, tx *transaction) (err error) {
			if _, err := tx.ExecContext(ctx, endAllReservations, millis(now)); err != nil {
				return err
			}
			ended, err = endFiles(ctx, tx, endOfAll, now)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return readAll(ctx, s.db.lookup, "find ended files", scanFile, endedFiles, limit)
}

func (s *Files) Forget(ctx context.Context, id string) error {
	return s.db.writeAnyway(ctx, "forget a file", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, "delete from file where id = ?", id)
		return err
	})
}

func (s *Files) KnownBlob(ctx context.Context, blob string) (known bool, err error) {
	err = s.db.lookup.QueryRowContext(ctx, "select exists (select 1 from file where blob = ?)", blob).Scan(&known)
	return known, storeError("look up a blob", err)
}
