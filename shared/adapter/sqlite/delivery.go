package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
)

// delivery has a receipt that distinguishes its lease from later leases of the same message.
type delivery struct {
	db *DB
	message
}

var _ worker.Delivery = (*delivery)(nil)

func (d *delivery) JobID() string { return d.message.jobID }

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

func (d *delivery) Complete(ctx context.Context, nonce string, result job.Result) error {
	return d.db.Jobs().Complete(ctx, d.message.jobID, nonce, result, d.db.now())
}

func (d *delivery) Fail(ctx context.Context, nonce string, failure job.Failure) error {
	return d.db.Jobs().Fail(ctx, d.message.jobID, nonce, failure, d.db.now())
}

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

func (d *delivery) Drop(ctx context.Context) error {
	return d.db.writeAnyway(ctx, "drop a message", func(ctx context.Context, tx *transaction) error {
		return d.db.deleteMessage(ctx, tx, d.message.id)
	})
}

func (d *delivery) held(ctx context.Context, tx *transaction) (bool, error) {
	var receipt int
	err := tx.QueryRowContext(ctx, "select receipt from lease where message = ?", d.message.id).Scan(&receipt)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return receipt == d.receipt, err
}
