package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
)

// delivery is a leased message. The receipt distinguishes its lease from a later
// one of the same message, which only the other worker may extend or return.
type delivery struct {
	db *DB
	message
}

var _ worker.Delivery = (*delivery)(nil)

// JobID returns the id of the job.
func (d *delivery) JobID() string { return d.message.jobID }

// Extend makes the lease last for the duration from now, even if it ran out, as
// long as nobody has received the job since.
//
// Errors: fault.Conflict if the delivery is settled or another worker has received
// the job: the worker must stop.
func (d *delivery) Extend(ctx context.Context, lease time.Duration) error {
	return d.db.writeAnyway(ctx, "extend a lease", func(ctx context.Context, tx *transaction) error {
		held, err := d.held(ctx, tx)
		if err != nil {
			return err
		}
		if !held {
			return worker.LeaseLost(nil)
		}
		return d.db.hideMessage(ctx, tx, d.message.id, max(lease, 0))
	})
}

// Complete reports the result of the run and settles the delivery.
//
// Errors: as Jobs' Complete. The message is deleted when the job ends, whoever ends
// it.
func (d *delivery) Complete(ctx context.Context, nonce string, result job.Result) error {
	return d.db.Jobs().Complete(ctx, d.message.jobID, nonce, result, d.db.now())
}

// Fail reports a failure and settles the delivery.
//
// Errors: as Jobs' Fail.
func (d *delivery) Fail(ctx context.Context, nonce string, failure job.Failure) error {
	return d.db.Jobs().Fail(ctx, d.message.jobID, nonce, failure, d.db.now())
}

// Nack returns the job to the queue for another worker, after the delay. It does
// nothing if another worker has received the job since.
func (d *delivery) Nack(ctx context.Context, delay time.Duration) error {
	err := d.db.writeAnyway(ctx, "return a message", func(ctx context.Context, tx *transaction) error {
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

// Drop settles a delivery whose job needs nothing more, whoever holds its lease.
func (d *delivery) Drop(ctx context.Context) error {
	return d.db.writeAnyway(ctx, "drop a message", func(ctx context.Context, tx *transaction) error {
		return d.db.deleteMessage(ctx, tx, d.message.id)
	})
}

// held reports whether the latest lease of the message is this delivery's.
func (d *delivery) held(ctx context.Context, tx *transaction) (bool, error) {
	var receipt int
	err := tx.QueryRowContext(ctx, "select receipt from lease where message = ?", d.message.id).Scan(&receipt)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return receipt == d.receipt, err
}
