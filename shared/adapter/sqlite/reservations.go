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
	endReservations = "delete from reservation where account = ? and until <= ?"
	countPromises   = "select count(*) from file indexed by file_promised where account = ? and state = 'promised'"
)

// Reserve makes a reservation hold more. It is not waited for until it is on the
// disk, as no reservation outlives the process.
//
// Errors: fault.Limited; fault.StorageFull.
func (s *Files) Reserve(
	ctx context.Context, r file.Reservation, least, most, limit int64, now time.Time,
) (file.Reservation, error) {
	err := s.db.writeVolatile(ctx, "reserve storage", func(ctx context.Context, tx *sql.Tx) error {
		var held int64
		err := tx.QueryRowContext(ctx, "select bytes from reservation where id = ?", r.ID).Scan(&held)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		switch room, err := int64(0), error(nil); {
		case limit == 0:
			r.Bytes = max(held, most)
		case least <= held:
			r.Bytes = held // it is renewed, which no account is too full for
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
	return s.db.writeVolatile(ctx, "release storage", func(ctx context.Context, tx *sql.Tx) error {
		_, err := release(ctx, tx, r)
		return err
	})
}

// release ends a reservation and gives how much it held.
func release(ctx context.Context, tx *sql.Tx, r file.Reservation) (held int64, err error) {
	if r.ID == "" {
		return 0, nil
	}
	err = tx.QueryRowContext(ctx, "delete from reservation where id = ? returning bytes", r.ID).Scan(&held)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return held, err
}

// ReleaseAll ends all reservations.
func (s *Files) ReleaseAll(ctx context.Context) error {
	return s.db.write(ctx, "release storage", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "delete from reservation")
		return err
	})
}

// makeRoom gives how many bytes the account may still store, with what has ended
// out of the way if need be. A limit of 0 is none; for that, and where nothing is
// needed, it gives nothing.
//
// Errors: fault.Limited when those are fewer than need.
func (s *Files) makeRoom(
	ctx context.Context, tx *sql.Tx, account string, need, limit int64, now time.Time,
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
		ended, err := s.endOf(ctx, tx, account, now)
		if err != nil {
			return 0, err
		}
		if ended == 0 {
			left := max(0, limit-used)
			return 0, fault.New(fault.Limited, "The account may store %d bytes, and has %d left.", limit, left)
		}
	}
}

// endOf ends what is over of an account, a batch of it, and gives how much.
func (s *Files) endOf(ctx context.Context, tx *sql.Tx, account string, now time.Time) (int64, error) {
	// Files only by a clock that can be trusted, as that is for good.
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

// mayPromise refuses a promise beyond those that its account may have. Those whose
// time is over do not count.
//
// Errors: file.ErrTooManyPending.
func mayPromise(ctx context.Context, tx *sql.Tx, f file.File) error {
	if !f.Pending || f.Upload.Most == 0 {
		return nil
	}
	for {
		var promised int
		if err := tx.QueryRowContext(ctx, countPromises, f.Account).Scan(&promised); err != nil || promised < f.Upload.Most {
			return err
		}
		ended, err := endFiles(ctx, tx, endOfAccount, f.CreatedAt, f.Account)
		if err != nil {
			return err
		}
		if ended == 0 {
			return fault.Wrap(file.ErrTooManyPending, fault.Limited, "The account has promised as many files as it may.")
		}
	}
}

// Abandon ends a promise; the next sweep takes what has come of its bytes.
//
// Errors: fault.NotFound when there is none, or it was kept.
func (s *Files) Abandon(ctx context.Context, id string) error {
	return s.changePromise(ctx, "break a promise", "update file set state = 'ended' where id = ? and state = 'promised'", id)
}

// Extend puts off the end of a promise.
//
// Errors: fault.NotFound.
func (s *Files) Extend(ctx context.Context, id string, until time.Time) error {
	return s.changePromise(ctx, "extend a promise",
		"update file set upload_until = max(upload_until, ?2) where id = ?1 and state = 'promised'", id, millis(until))
}

func (s *Files) changePromise(ctx context.Context, what, statement string, values ...any) error {
	return s.db.write(ctx, what, func(ctx context.Context, tx *sql.Tx) error {
		changed, err := tx.ExecContext(ctx, statement, values...)
		return oneOf(changed, err)
	})
}

// oneOf gives the error of a statement that was to change a file.
//
// Errors: fault.NotFound when it changed none.
func oneOf(changed sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := changed.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return fault.New(fault.NotFound, "File not found.")
}
