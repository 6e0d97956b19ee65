package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

const (
	// unlessBatch excludes the reservations of batches that have blobs.
	unlessBatch     = " not exists (select 1 from batch where batch.id = reservation.id and kept = 1)"
	endReservations = "delete from reservation where account = ? and until <= ? and" + unlessBatch
	countPending    = "select count(*) from file indexed by file_promised where account = ? and state = 'promised'"
)

// Reserve enlarges a reservation. The write need not reach the disk first: an upload does not
// outlive the process, and a batch's record, which is written next, takes it along.
//
// Errors: fault.Limited; fault.StorageFull.
func (s *Files) Reserve(
	ctx context.Context, r file.Reservation, least, most, limit int64, now time.Time,
) (file.Reservation, error) {
	err := s.db.writeVolatile(ctx, "reserve storage", func(ctx context.Context, tx *transaction) error {
		var held int64
		err := tx.QueryRowContext(ctx, "select bytes from reservation where id = ?", r.ID).Scan(&held)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		switch room, err := int64(0), error(nil); {
		case limit == 0:
			r.Bytes = max(held, most)
		case least <= held:
			r.Bytes = held // a renewal, which succeeds even in a full account
		default:
			if room, err = s.makeRoom(ctx, tx, r.Account, least-held, limit, now); err != nil {
				return err
			}
			r.Bytes = least
			if room-(most-held) >= file.Ample*(most-least) {
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

// Release ends a reservation.
func (s *Files) Release(ctx context.Context, r file.Reservation) error {
	return s.db.writeVolatile(ctx, "release storage", func(ctx context.Context, tx *transaction) error {
		_, err := release(ctx, tx, r)
		return err
	})
}

// release ends a reservation and returns how much it held.
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

// ReleaseAll ends all reservations, except if a batch that has blobs holds them.
func (s *Files) ReleaseAll(ctx context.Context) error {
	return s.db.write(ctx, "release storage", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, "delete from reservation where"+unlessBatch)
		return err
	})
}

// RecountStorage counts the bytes of all accounts again, from their files and reservations. A
// database that was saved in part may have other counts.
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

// makeRoom returns how many bytes the account may still store, after ending what is
// over if necessary. A limit of 0 means none; then, and if nothing is needed, it
// returns 0.
//
// Errors: fault.Limited if they are fewer than need.
func (s *Files) makeRoom(
	ctx context.Context, tx *transaction, account string, need, limit int64, now time.Time,
) (room int64, err error) {
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
			left := max(0, limit-used)
			return 0, fault.New(fault.Limited, "The account may store %d bytes, and has %d left.", limit, left)
		}
	}
}

// endBatchOf ends a batch of an account's files and reservations whose time is over, and
// returns their number.
func (s *Files) endBatchOf(ctx context.Context, tx *transaction, account string, now time.Time) (int64, error) {
	// Files only if the clock can be trusted, because ending them is final.
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

// checkPendingLimit refuses a pending file beyond the account's limit. Those past their
// time do not count.
//
// Errors: file.ErrTooManyPending.
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

// Abandon ends a pending file; the next sweep deletes the bytes that have arrived.
//
// Errors: fault.NotFound if there is none, or it is final.
func (s *Files) Abandon(ctx context.Context, id string) error {
	return s.changePending(ctx, "abandon a pending file",
		"update file set state = 'ended' where id = ? and state = 'promised'",
		id)
}

// Extend extends a pending file.
//
// Errors: fault.NotFound.
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

// oneOf returns the error of a statement that should change one file.
//
// Errors: fault.NotFound if it changed none.
func oneOf(changed sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := changed.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return file.ErrNotFound
}
