package sqlite

import (
	"context"
	"database/sql"
	"math"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// Start begins a run under the nonce.
//
// Errors: fault.NotFound; fault.Conflict when the job has ended,
// job.ErrOverdue, job.ErrNoRunsLeft; fault.Invalid when the nonce is empty.
func (s *Jobs) Start(ctx context.Context, id, nonce string, now time.Time) (job.Job, error) {
	if nonce == "" {
		return job.Job{}, fault.New(fault.Invalid, "A run has a nonce.")
	}
	var j job.Job
	err := s.change(ctx, "start a run", id, func(ctx context.Context, tx *sql.Tx) (err error) {
		if j, err = find(ctx, tx, id); err != nil {
			return err
		}
		switch {
		case j.Status.Terminal():
			return errEnded
		case j.Nonce == nonce:
			return nil
		case !now.Before(j.Deadline):
			return job.ErrOverdue
		case j.Runs >= job.MaxRuns:
			return job.ErrNoRunsLeft
		}
		j.Status, j.Nonce, j.Runs = job.Processing, nonce, j.Runs+1
		if j.StartedAt.IsZero() {
			j.StartedAt = time.UnixMilli(millis(now)).UTC()
		}
		_, err = tx.ExecContext(ctx, "update job set status = ?, nonce = ?, runs = ?, started_at = ? where id = ?",
			j.Status, j.Nonce, j.Runs, millis(j.StartedAt), id)
		return err
	})
	if err != nil {
		return job.Job{}, err
	}
	return j, nil
}

// Progress records how far the run is, as a fraction that is kept within 0 and
// 1; a lower figure than the recorded one is not written.
//
// Errors: fault.Conflict when the run is no longer the job's own.
func (s *Jobs) Progress(ctx context.Context, id, nonce string, fraction float64) error {
	if math.IsNaN(fraction) {
		fraction = 0 // a part of nothing; SQLite would take it for null
	}
	return s.change(ctx, "record progress", id, func(ctx context.Context, tx *sql.Tx) error {
		return expectRow(tx.ExecContext(ctx, `update job set progress = max(progress, min(?, 1.0))
			where id = ? and nonce = ? and nonce <> '' and status = 'processing'`, fraction, id, nonce))
	})
}

// Release takes a run back as if it had not started. A run that is no longer
// the job's own is left alone, without error.
func (s *Jobs) Release(ctx context.Context, id, nonce string) error {
	return s.changeAnyway(ctx, "release a run", id, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `update job set runs = runs - 1, nonce = ''
			where id = ? and nonce = ? and nonce <> '' and status = 'processing'`, id, nonce)
		return err
	})
}

// Complete ends the job with its result and full progress. A Complete that
// finds itself done has succeeded.
//
// Errors: fault.Conflict when the run is no longer the job's own, or the
// deadline is not ahead of now; nothing changes then.
func (s *Jobs) Complete(ctx context.Context, id, nonce string, result job.Result, now time.Time) error {
	return s.changeAnyway(ctx, "complete a job", id, func(ctx context.Context, tx *sql.Tx) error {
		j, err := find(ctx, tx, id)
		switch {
		case fault.Is(err, fault.NotFound):
			return errNotOwn
		case err != nil:
			return err
		case nonce == "" || j.Nonce != nonce:
			return errNotOwn
		case j.Status == job.Completed:
			return nil
		case j.Status.Terminal():
			return errEnded
		case !now.Before(j.Deadline):
			return job.ErrOverdue
		}
		j.Status, j.Progress, j.CompletedAt, j.Result = job.Completed, 1, now, &result
		return s.db.end(ctx, tx, j)
	})
}

// Fail ends the job with a failure; an empty nonce ends it whatever the run. A
// Fail that finds itself done has succeeded.
//
// Errors: fault.NotFound; fault.Conflict when the job has ended, or the run is
// no longer its own.
func (s *Jobs) Fail(ctx context.Context, id, nonce string, failure job.Failure, now time.Time) error {
	return s.changeAnyway(ctx, "fail a job", id, func(ctx context.Context, tx *sql.Tx) error {
		j, err := find(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case j.Status == job.Failed && j.Nonce == nonce && *j.Failure == failure:
			return nil
		case j.Status.Terminal():
			return errEnded
		case nonce != "" && j.Nonce != nonce:
			return errNotOwn
		}
		// The record keeps the nonce of who ended the job, so that a run that
		// lost it to the reaper does not take the reaper's end for its own.
		j.Status, j.Nonce, j.CompletedAt, j.Failure = job.Failed, nonce, now, &failure
		return s.db.end(ctx, tx, j)
	})
}

// expectRow turns an update that changed no row into errNotOwn.
func expectRow(changed sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := changed.RowsAffected()
	if err == nil && n == 0 {
		return errNotOwn
	}
	return err
}
