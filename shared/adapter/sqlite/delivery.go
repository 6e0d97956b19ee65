package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
)

// delivery is a leased message. The receipt tells its lease from a later one of
// the same message, which is another worker's to extend and to return.
type delivery struct {
	db *DB
	message
}

var _ worker.Delivery = (*delivery)(nil)

// JobID names the job.
func (d *delivery) JobID() string { return d.message.jobID }

// Extend makes the lease last for the time from now, also when it ran out and
// nobody took the job since.
//
// Errors: fault.Conflict when the delivery is settled or another worker has
// received the job: the worker then stops.
func (d *delivery) Extend(ctx context.Context, lease time.Duration) error {
	return d.db.writeAnyway(ctx, "extend a lease", func(ctx context.Context, tx *sql.Tx) error {
		held, err := d.held(ctx, tx)
		if err != nil {
			return err
		}
		if !held {
			return fault.New(fault.Conflict, "The lease is another worker's.")
		}
		return d.db.hideMessage(ctx, tx, d.message.id, max(lease, 0))
	})
}

// Complete reports the result of the run and settles.
//
// Errors: as Jobs' Complete. The message goes with the end of the job, whoever
// brought that about.
func (d *delivery) Complete(ctx context.Context, nonce string, result job.Result) error {
	return d.db.Jobs().Complete(ctx, d.message.jobID, nonce, result, d.db.now())
}

// Fail reports a failure and settles.
//
// Errors: as Jobs' Fail.
func (d *delivery) Fail(ctx context.Context, nonce string, failure job.Failure) error {
	return d.db.Jobs().Fail(ctx, d.message.jobID, nonce, failure, d.db.now())
}

// Nack puts the job back on the queue for another worker, after the delay. A job that
// another worker has received since is left to that one.
func (d *delivery) Nack(ctx context.Context, delay time.Duration) error {
	err := d.db.writeAnyway(ctx, "return a message", func(ctx context.Context, tx *sql.Tx) error {
		held, err := d.held(ctx, tx)
		if err != nil || !held {
			return err
		}
		if _, err := tx.ExecContext(ctx, "delete from lease where message = ?", d.message.id); err != nil {
			return err
		}
		return d.db.hideMessage(ctx, tx, d.message.id, max(delay, 0))
	})
	if err == nil {
		d.db.bell.ring()
	}
	return err
}

// Drop settles a delivery whose job needs nothing more, from whoever holds it.
func (d *delivery) Drop(ctx context.Context) error {
	return d.db.writeAnyway(ctx, "drop a message", func(ctx context.Context, tx *sql.Tx) error {
		return d.db.deleteMessage(ctx, tx, d.message.id)
	})
}

// held reports whether the latest lease of the message is this delivery's.
func (d *delivery) held(ctx context.Context, tx *sql.Tx) (bool, error) {
	var receipt int
	err := tx.QueryRowContext(ctx, "select receipt from lease where message = ?", d.message.id).Scan(&receipt)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return receipt == d.receipt, err
}
