package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/file"
)

const (
	unlessBatch     = " not exists (select 1 from batch where batch.id = reservation.id and kept = 1)"
	endReservations = "delete from reservation where account = ? and until <= ? and" + unlessBatch
	// endAllReservations scans all reservations: one for each upload, open batch and result.
	endAllReservations = "delete from reservation where until <= ? and" + unlessBatch
	countPending       = "select count(*) from file indexed by file_promised where account = ? and state = 'promised'"
)

// Reserve does not sync to disk. An upload does not outlive the process anyway, and a batch's
// reservation is synced by the next write, which records the batch.
func (s *Files) Reserve(
	ctx context.Context, r file.Reservation, least, most, limit int64, now time.Time,
) (file.Reservation, error) {
	err := s.db.writeVolatile(ctx, "reserve storage", func(ctx context.Context, tx *transaction) error {
		var held int64
		err := tx.QueryRowContext(ctx, "select bytes from reservation where id = ?", r.ID).Scan(&held)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		switch space, err := int64(0), error(nil); {
		case limit == 0:
			r.Bytes = max(held, most)
		case least <= held:
			r.Bytes = held // a renewal succeeds even if the account is full
		default:
			if space, err = s.makeSpace(ctx, tx, r.Account, least-held, limit, now); err != nil {
				return err
			}
			r.Bytes = least
			if space-(most-held) >= file.Ample*(most-least) {
				r.Bytes = most
			}
		}
		_, err = tx.ExecContext(ctx, `insert into reservation (id, account, bytes, until) values (?, ?, ?, ?)
			on conflict (id) do update set bytes = excluded.bytes, until = excluded.until`,
			r.ID, r.Account, r.Bytes, millis(r.Until))
		return err
	})
	return r, err
}

func (s *Files) Release(ctx context.Context, r file.Reservation) error {
	return s.db.writeVolatile(ctx, "release storage", func(ctx context.Context, tx *transaction) error {
		_, err := release(ctx, tx, r)
		return err
	})
}

func release(ctx context.Context, tx *transaction, r file.Reservation) (held int64, err error) {
	if r.ID == "" {
		return 0, nil
	}
	err = tx.QueryRowContext(ctx, "delete from reservation where id = ? returning bytes", r.ID).Scan(&held)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return held, err
}

// ReleaseAll releases all reservations except the reservations of batches with blobs and of jobs' results.
func (s *Files) ReleaseAll(ctx context.Context) error {
	return s.db.write(ctx, "release storage", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, "delete from reservation where"+unlessBatch+
			" and not exists (select 1 from job where job.id = reservation.id)")
		return err
	})
}

// RecountStorage recounts every account's storage. It is for a database that was only partly restored.
func (s *Files) RecountStorage(ctx context.Context) error {
	return s.db.write(ctx, "count storage", func(ctx context.Context, tx *transaction) error {
		if _, err := tx.ExecContext(ctx, "delete from storage"); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `insert into storage (account, bytes) select account, sum(bytes) from (
			select account, counts as bytes from file union all select account, bytes from reservation) group by account`)
		return err
	})
}

// makeSpace returns the number of bytes that the account may still store. If that is less than `need`, it first ends
// expired files. It returns 0 if the account has no limit or need is 0.
//
// Errors: fault.Limited if ending files does not free enough.
func (s *Files) makeSpace(
	ctx context.Context, tx *transaction, account string, need, limit int64, now time.Time,
) (space int64, err error) {
	if limit == 0 || need <= 0 {
		return 0, nil
	}
	for {
		var used int64
		err := tx.QueryRowContext(ctx, "select bytes from storage where account = ?", account).Scan(&used)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, err
		}
		if used+need <= limit {
			return limit - used, nil
		}
		ended, err := s.endBatchOf(ctx, tx, account, now)
		if err != nil {
			return 0, err
		}
		if ended == 0 {
			return 0, file.StorageFull(limit)
		}
	}
}

// endBatchOf ends some of an account's expired files or reservations and returns their number.
func (s *Files) endBatchOf(ctx context.Context, tx *transaction, account string, now time.Time) (int64, error) {
	// Ending a file cannot be undone, so do it only if the clock can be trusted.
	if s.db.settled == nil || s.db.settled() {
		ended, err := endFiles(ctx, tx, endOfAccount, now, account)
		if err != nil || ended > 0 {
			return ended, err
		}
	}
	changed, err := tx.ExecContext(ctx, endReservations, account, millis(now))
	if err != nil {
		return 0, err
	}
	return changed.RowsAffected()
}

// checkPendingLimit does not count expired pending files.
func checkPendingLimit(ctx context.Context, tx *transaction, f file.File) error {
	if !f.Pending || f.Upload.Most == 0 {
		return nil
	}
	for {
		var pending int
		if err := tx.QueryRowContext(ctx, countPending, f.Account).Scan(&pending); err != nil || pending < f.Upload.Most {
			return err
		}
		ended, err := endFiles(ctx, tx, endOfAccount, f.CreatedAt, f.Account)
		if err != nil {
			return err
		}
		if ended == 0 {
			return file.ErrTooManyPending
		}
	}
}

// Abandon leaves the file's bytes to the next sweep.
func (s *Files) Abandon(ctx context.Context, id string) error {
	return s.changePending(ctx, "abandon a pending file",
		"update file set state = 'ended' where id = ? and state = 'promised'",
		id)
}

func (s *Files) Extend(ctx context.Context, id string, until time.Time) error {
	return s.changePending(ctx, "extend a pending file",
		"update file set upload_until = max(upload_until, ?2) where id = ?1 and state = 'promised'", id, millis(until))
}

func (s *Files) changePending(ctx context.Context, what, statement string, values ...any) error {
	return s.db.write(ctx, what, func(ctx context.Context, tx *transaction) error {
		changed, err := tx.ExecContext(ctx, statement, values...)
		return oneOf(changed, err)
	})
}

// oneOf returns fault.NotFound if a statement changed no row.
func oneOf(changed sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := changed.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return file.ErrNotFound
}
