package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
)

// pollInterval is the interval at which a waiting Receive checks for events that ring no bell:
// expired leases and delays, and jobs sent by other processes.
const pollInterval = time.Second

// Queue implements worker.Queue with one queue per lane and account.
//
// Receive serves the account with the fewest leased messages. Among equals, it serves the account that was served
// longest ago. Within an account, the oldest job comes first. While a job of normal priority waits on the lane, Receive
// ignores jobs with low priority. If Options.AccountLeases or more of a lane's jobs are leased, it serves only accounts
// that have no lease on that lane. At most Options.AccountLeases of the leased jobs are long, so that long jobs of several
// accounts cannot take all slots from brief ones.
//
// Jobs that were leased during a crash run one at a time, because one of them may have caused it.
type Queue struct{ db *DB }

var _ worker.Queue = (*Queue)(nil)

// Neither a lane nor an account contains a slash.
func queueName(lane job.Lane, account string) string { return string(lane) + "/" + account }

// suspected is the suffix of queues for jobs that were leased during a crash.
const suspected = "/suspected"

func (q *Queue) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	if lease <= 0 {
		return nil, fmt.Errorf("sqlite: receive: invalid lease %v", lease)
	}
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		rung := q.db.bell.wait()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		received, err := q.tryReceive(ctx, lane, lease)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, err
		}
		if received != nil {
			return received, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-rung:
		case <-poll.C:
		}
	}
}

const (
	// leasesOfAccount counts the account's leases on the lane of the row "waiting".
	leasesOfAccount = `(select count(*) from lease join goqite on goqite.id = lease.message
			where lease.queue in (replace(waiting.queue, '` + suspected + `', ''),
				replace(waiting.queue, '` + suspected + `', '') || '` + suspected + `') and goqite.timeout > ?2)`

	// allLeases counts the leases on the lane ?1.
	allLeases = `(select count(*) from lease join goqite on goqite.id = lease.message
			where lease.queue >= ?1 || '/' and lease.queue < ?1 || '0' and goqite.timeout > ?2)`

	// longLeases is like allLeases, but does not count brief jobs.
	longLeases = `(select count(*) from lease join goqite on goqite.id = lease.message
			where lease.queue >= ?1 || '/' and lease.queue < ?1 || '0' and goqite.timeout > ?2 and goqite.priority <= 0)`

	// nextQueue selects the queue to serve (see Queue), given the lane, the time and Options.AccountLeases. It also
	// reports whether only brief jobs may be received.
	nextQueue = `select waiting.queue, ?3 > 0 and ` + longLeases + ` >= ?3 from goqite as waiting
		left join served on served.queue = waiting.queue
		where waiting.queue >= ?1 || '/' and waiting.queue < ?1 || '0' and waiting.timeout <= ?2
			and (waiting.queue not like '%` + suspected + `' or not exists (select 1 from lease
				join goqite on goqite.id = lease.message
				where lease.queue like '%` + suspected + `' and goqite.timeout > ?2))
			and (waiting.priority >= 0 or not exists (select 1 from goqite
				where queue >= ?1 || '/' and queue < ?1 || '0' and priority >= 0 and timeout <= ?2))
			and (?3 = 0 or waiting.priority > 0 or ` + longLeases + ` < ?3)
		group by waiting.queue
		having ?3 = 0 or ` + leasesOfAccount + ` = 0 or ` + allLeases + ` < ?3
		order by ` + leasesOfAccount + `, coalesce(served.turn, 0), min(waiting.created)
		limit 1`
)

func (q *Queue) tryReceive(ctx context.Context, lane job.Lane, lease time.Duration) (*delivery, error) {
	// Read first, so that idle workers do not block the writer.
	var name string
	var brief bool
	err := q.db.lookup.QueryRowContext(ctx, nextQueue, lane, q.db.moment(0), q.db.accountLeases).Scan(&name, &brief)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("look up a message", err)
	}
	var received *delivery
	err = q.db.write(ctx, "receive", func(ctx context.Context, tx *transaction) error {
		// Look again, because another receiver may have taken the job.
		if err := tx.QueryRowContext(ctx, nextQueue, lane, q.db.moment(0), q.db.accountLeases).Scan(&name, &brief); err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			return err
		}
		m, ok, err := q.db.receiveMessage(ctx, tx, name, lease, brief)
		if err != nil || !ok {
			return err
		}
		if _, err := tx.ExecContext(ctx, "insert or replace into lease (message, queue, receipt) values (?, ?, ?)",
			m.id, name, m.receipt); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `insert or replace into served (queue, turn)
			values (?, (select coalesce(max(turn), 0) + 1 from served))`, name)
		received = &delivery{q.db, m}
		return err
	})
	if err != nil {
		return nil, err
	}
	return received, nil
}

const (
	leasedJobs = "(select cast(body as text) from lease join goqite on goqite.id = lease.message)"

	// forgiveRuns records a crash for each job that was running. Up to job.FreeCrashes times per job, it also
	// subtracts the run from the job's run count.
	forgiveRuns = `update job set nonce = '', crashes = crashes + 1,
			runs = case when crashes < ? then max(runs - 1, 0) else runs end
		where id in ` + leasedJobs + ` and completed_at is null and nonce <> ''`

	// suspect moves jobs that were leased during a crash to a separate queue.
	suspect = "update goqite set queue = queue || '" + suspected + `'
		where id in (select message from lease) and queue not like '%` + suspected + `'
			and cast(body as text) in (select id from job where id in ` + leasedJobs + " and crashes > 0)"
)

// RecoverLeases makes every message visible. Call it when the only receiving process starts. Runs
// that ended in a crash are forgiven (see job.FreeCrashes).
func (q *Queue) RecoverLeases(ctx context.Context) error {
	err := q.db.writeAnyway(ctx, "recover leases", func(ctx context.Context, tx *transaction) error {
		if _, err := tx.ExecContext(ctx, forgiveRuns, job.FreeCrashes); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, suspect); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "delete from lease"); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "update goqite set timeout = ?1 where timeout > ?1", q.db.moment(0))
		return err
	})
	if err == nil {
		q.db.bell.ring()
	}
	return err
}
