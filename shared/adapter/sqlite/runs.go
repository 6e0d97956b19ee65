package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// A result counts toward the account's stored bytes until it expires.
const reserveResult = "insert into reservation (id, account, bytes, until) values (?, ?, ?, ?) on conflict do nothing"

func (s *Jobs) Start(ctx context.Context, id, nonce string, now time.Time) (job.Job, error) {
	if nonce == "" {
		return job.Job{}, job.ErrNoNonce
	}
	var j job.Job
	err := s.change(ctx, "start a run", id, func(ctx context.Context, tx *transaction) (err error) {
		if j, err = find(ctx, tx, id); err != nil {
			return err
		}
		switch {
		case j.Status.Terminal():
			return job.ErrEnded
		case j.Nonce == nonce:
			return nil
		case !now.Before(j.Deadline):
			return job.ErrOverdue
		case j.Runs >= job.MaxRuns:
			return job.ErrNoRunsLeft
		}
		j.Deadline = j.RunDeadline()
		j.Status, j.Nonce, j.Runs = job.Processing, nonce, j.Runs+1
		if j.StartedAt.IsZero() {
			j.StartedAt = time.UnixMilli(millis(now)).UTC()
		}
		_, err = tx.ExecContext(ctx, `update job set status = ?, nonce = ?, runs = ?, started_at = ?, deadline = ?
			where id = ?`, j.Status, j.Nonce, j.Runs, millis(j.StartedAt), millis(j.Deadline), id)
		return err
	})
	if err != nil && !errors.Is(err, job.ErrOverdue) {
		return job.Job{}, err
	}
	return j, err
}

func (s *Jobs) Progress(ctx context.Context, id, nonce string, fraction float64) error {
	if math.IsNaN(fraction) {
		fraction = 0 // SQLite would store NaN as null
	}
	return s.change(ctx, "record progress", id, func(ctx context.Context, tx *transaction) error {
		return expectRow(tx.ExecContext(ctx, `update job set progress = max(progress, min(?, 1.0))
			where id = ? and nonce = ? and nonce <> '' and status = 'processing'`, fraction, id, nonce))
	})
}

func (s *Jobs) Release(ctx context.Context, id, nonce string) error {
	return s.changeAnyway(ctx, "release a run", id, func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, `update job set runs = runs - 1, nonce = ''
			where id = ? and nonce = ? and nonce <> '' and status = 'processing'`, id, nonce)
		return err
	})
}

func (s *Jobs) Complete(ctx context.Context, id, nonce string, result job.Result, now time.Time) error {
	return s.changeAnyway(ctx, "complete a job", id, func(ctx context.Context, tx *transaction) error {
		j, err := find(ctx, tx, id)
		switch {
		case fault.Is(err, fault.NotFound):
			return job.ErrNotOwn
		case err != nil:
			return err
		case nonce == "" || j.Nonce != nonce:
			return job.ErrNotOwn
		case j.Status == job.Completed:
			return nil
		case j.Status.Terminal():
			return job.ErrEnded
		case !now.Before(j.Deadline):
			return job.ErrOverdue
		}
		j.Status, j.Progress, j.CompletedAt, j.Result = job.Completed, 1, now, &result
		if err := s.db.end(ctx, tx, j); err != nil {
			return err
		}
		if _, err = tx.ExecContext(ctx, reserveResult,
			id, j.Account, result.Size, millis(j.ResultExpiry(job.DefaultResultAge))); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, addCounts, countsOf(job.Billed(j))...)
		return err
	})
}

func (s *Jobs) Fail(ctx context.Context, id, nonce string, failure job.Failure, now time.Time) error {
	return s.changeAnyway(ctx, "fail a job", id, func(ctx context.Context, tx *transaction) error {
		j, err := find(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case j.Status == job.Failed && j.Nonce == nonce && *j.Failure == failure:
			return nil
		case j.Status.Terminal():
			return job.ErrEnded
		case nonce != "" && j.Nonce != nonce:
			return job.ErrNotOwn
		}
		// Keep the nonce that ended the job, so that a run does not mistake an end by the reaper for its own.
		j.Status, j.Nonce, j.CompletedAt, j.Failure = job.Failed, nonce, now, &failure
		return s.db.end(ctx, tx, j)
	})
}

// expectRow returns job.ErrNotOwn if an update changed no row.
func expectRow(changed sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := changed.RowsAffected()
	if err == nil && n == 0 {
		return job.ErrNotOwn
	}
	return err
}
