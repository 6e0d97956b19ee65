package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
)

// Jobs is a job.Store with a queue. A job has a queue message until it ends. The transaction that
// accepts the job sends the message, and the transaction that ends the job deletes it.
type Jobs struct {
	db *DB
	// budgets is nil if jobs have no budget holds.
	budgets *Budgets
}

var (
	_ job.Store     = (*Jobs)(nil)
	_ job.Runs      = (*Jobs)(nil)
	_ job.Retention = (*Jobs)(nil)
)

const (
	openOfAccount = "select count(*) from job indexed by job_open_by_account where account = ? and completed_at is null"

	backlogOfLane = `select
		(select count(*) from job where lane = ?1 and completed_at is null),
		(select count(*) from job where lane = ?1 and account = ?2 and completed_at is null),
		(select count(*) from job indexed by job_open_by_account where account = ?2 and completed_at is null),
		(select count(*) from lease join goqite on goqite.id = lease.message
			where lease.queue >= ?1 || '/' and lease.queue < ?1 || '0' and goqite.timeout > ?3),
		count(*), count(*) filter (where queue in (?1 || '/' || ?2, ?1 || '/' || ?2 || '` + suspected + `'))
		from goqite where queue >= ?1 || '/' and queue < ?1 || '0' and priority < 0 and timeout <= ?3`

	// The limit of runsOfLane is well above recentRuns, because one account may have completed most of the jobs.
	runsOfLane = `select model, account, completed_at, completed_at - started_at from job
		where lane = ?1 and status = 'completed' order by completed_at desc limit 100`

	// unfinishedRuns has the columns of runsOfLane for the jobs that are running now.
	unfinishedRuns = `select model, account, ?2, ?2 - started_at from job
		where id in ` + leasedJobs + ` and lane = ?1 and status = 'processing'`
)

// recentRuns is high enough to average clips of different lengths, but low enough to follow a
// change of the engine within minutes. At most runsOfAccount of the runs are from the same account,
// so that no single account determines the mean.
const recentRuns, runsOfAccount = 20, 5

// HoldIn makes Accept reserve amounts in these budgets.
func (s *Jobs) HoldIn(budgets *Budgets) *Jobs {
	s.budgets = budgets
	return s
}

func (s *Jobs) Accept(ctx context.Context, j job.Job, limit int, claims ...budget.Claim) error {
	request, err := encode(j.Request)
	if err != nil {
		return fmt.Errorf("sqlite: accept a job: %w", err)
	}
	if err := s.db.admit(ctx, j.Account, len(request)+len(j.Webhook)); err != nil {
		return err
	}
	err = s.db.write(ctx, "accept a job", func(ctx context.Context, tx *transaction) error {
		if known, err := known(ctx, tx, j.ID); known || err != nil {
			return err
		}
		if limit > 0 {
			var open int
			if err := tx.QueryRowContext(ctx, openOfAccount, j.Account).Scan(&open); err != nil {
				return err
			}
			if open >= limit {
				return job.TooManyOpen(limit)
			}
		}
		holds, err := s.hold(ctx, tx, claims)
		if err != nil {
			return err
		}
		message, err := s.db.sendMessage(ctx, tx, j)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `insert into job
			(id, account, key, model, lane, seed, status, created_at, deadline, webhook, trace, estimate, message,
				holds)
			values (?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?)`,
			j.ID, j.Account, j.Key, j.Model, j.Lane, j.Seed, millis(j.CreatedAt), millis(j.Deadline), j.Webhook, j.Trace,
			j.Estimate.Milliseconds(), message, holds); err != nil {
			return err
		}
		if _, err = tx.ExecContext(ctx, "insert into job_request (job, body) values (?, ?)", j.ID, request); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, addCounts, countsOf(job.Usage(j))...)
		return err
	})
	if err == nil {
		s.db.bell.ring()
	}
	return err
}

func (s *Jobs) hold(ctx context.Context, tx *transaction, claims []budget.Claim) (stored sql.NullString, err error) {
	if len(claims) == 0 {
		return stored, nil
	}
	if s.budgets == nil {
		return stored, errors.New("job has budget claims, but no budget store is configured")
	}
	holds, err := s.budgets.holdBudgets(ctx, tx, claims)
	if err != nil {
		return stored, err
	}
	return encodeOptional(&holds)
}

func (s *Jobs) Get(ctx context.Context, id string) (job.Job, error) {
	j, err := find(ctx, s.db.lookup, id)
	return j, storeError("get a job", err)
}

func (s *Jobs) Expire(ctx context.Context, id string, now time.Time) (job.Job, error) {
	var j job.Job
	err := s.changeAnyway(ctx, "expire a job", id, func(ctx context.Context, tx *transaction) (err error) {
		if j, err = find(ctx, tx, id); err != nil || j.Status.Terminal() || now.Before(j.Deadline) {
			return err
		}
		j = j.At(now)
		return s.db.end(ctx, tx, j)
	})
	return j, err
}

// Backlog ignores the run times of failed jobs.
func (s *Jobs) Backlog(ctx context.Context, lane job.Lane, account string) (backlog job.Backlog, err error) {
	err = s.db.lookup.QueryRowContext(ctx, backlogOfLane, lane, account, s.db.moment(0)).
		Scan(&backlog.Jobs, &backlog.AccountJobs, &backlog.AccountOpen, &backlog.Running, &backlog.Low, &backlog.AccountLow)
	if err == nil {
		var runs []job.RunTime
		runs, err = s.runs(ctx, lane)
		backlog.SetRuns(runs, account, s.db.now())
	}
	return backlog, storeError("read the backlog", err)
}

// runs returns run times at full speed: the runs that share a worker each count for their part of the time.
func (s *Jobs) runs(ctx context.Context, lane job.Lane) (runs []job.RunTime, err error) {
	const what = "read run times"
	completed, err := readAll(ctx, s.db.lookup, what, scanRunTime, runsOfLane, lane)
	if err != nil || s.db.accountLeases == 0 {
		return latestRuns(completed), err
	}
	unfinished, err := readAll(ctx, s.db.lookup, what, scanRunTime, unfinishedRuns, lane, millis(s.db.now()))
	runs = latestRuns(completed)
	for i, run := range runs {
		sharing := parallel(run, completed) + parallel(run, unfinished)
		runs[i].Took = time.Duration(float64(run.Took) * min(1, float64(s.db.accountLeases)/max(1, sharing)))
	}
	return runs, err
}

func scanRunTime(r row) (run job.RunTime, err error) {
	var ended, took int64
	err = r.Scan(&run.Model, &run.Account, &ended, &took)
	run.Ended, run.Took = time.UnixMilli(ended).UTC(), time.Duration(took)*time.Millisecond
	return run, err
}

func latestRuns(completed []job.RunTime) (runs []job.RunTime) {
	counts := map[string]int{}
	for _, run := range completed {
		if counts[run.Account]++; counts[run.Account] <= runsOfAccount && len(runs) < recentRuns {
			runs = append(runs, run)
		}
	}
	return runs
}

// parallel returns how many of the others ran during a run, on average.
func parallel(run job.RunTime, others []job.RunTime) (mean float64) {
	began := run.Ended.Add(-run.Took)
	for _, other := range others {
		from, until := other.Ended.Add(-other.Took), other.Ended
		if from.Before(began) {
			from = began
		}
		if until.After(run.Ended) {
			until = run.Ended
		}
		mean += max(0, until.Sub(from).Seconds()) / max(run.Took.Seconds(), 0.001)
	}
	return mean
}

func known(ctx context.Context, q querier, id string) (known bool, err error) {
	err = q.QueryRowContext(ctx, "select exists (select 1 from job where id = ?)", id).Scan(&known)
	return known, err
}

// end ends a job. It also settles the job's budget holds, deletes its message and schedules its webhook.
func (db *DB) end(ctx context.Context, tx *transaction, j job.Job) error {
	result, err := encodeOptional(j.Result)
	if err != nil {
		return err
	}
	failure, err := encodeOptional(j.Failure)
	if err != nil {
		return err
	}
	var message string
	if err := tx.QueryRowContext(ctx, `update job set
			status = ?, progress = ?, nonce = ?, completed_at = ?, result = ?, failure = ?
		where id = ? and completed_at is null returning message`,
		j.Status, j.Progress, j.Nonce, millis(j.CompletedAt), result, failure, j.ID).Scan(&message); err != nil {
		return err
	}
	if err := settleBudgets(ctx, tx, job.Settled(j)); err != nil {
		return err
	}
	if err := queueWebhook(ctx, tx, j); err != nil {
		return err
	}
	// Delete by id, because the message may be in a queue of suspected jobs.
	return db.deleteMessage(ctx, tx, message)
}
