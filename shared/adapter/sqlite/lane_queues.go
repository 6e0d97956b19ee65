package sqlite

import (
	"context"
	"database/sql"
	"strings"

	"cutroom/shared/domain/job"
)

var _ job.Queues = (*Jobs)(nil)

const (
	// messagesOfLane leaves out jobs with low priority.
	messagesOfLane = `select queue, count(*) from goqite where queue >= ?1 || '/' and queue < ?1 || '0' and priority >= 0
		group by queue`

	// leasesOfLane returns a row for each lease. The name of the queue is empty if the job has low priority.
	leasesOfLane = `select iif(priority < 0, '', lease.queue), 1 from lease join goqite on goqite.id = lease.message
		where lease.queue >= ?1 || '/' and lease.queue < ?1 || '0' and goqite.timeout > ?2`

	// ownOnLane counts an account's pending jobs of normal priority on a lane that come before and after a job.
	ownOnLane = `select count(*) filter (where id < ?3), count(*) filter (where id > ?3) from job indexed by job_open_by_lane
		where lane = ?1 and account = ?2 and completed_at is null and status = 'pending'
			and (select priority from goqite where goqite.id = job.message) >= 0`
)

func (s *Jobs) Queue(ctx context.Context, lane job.Lane) (job.Queue, error) {
	state := job.Queue{ByAccount: map[string]int{}}
	account := func(queue string) string {
		account, _, _ := strings.Cut(strings.TrimPrefix(queue, queueName(lane, "")), "/")
		return account
	}
	err := s.each(ctx, messagesOfLane, []any{lane}, func(queue string, count int64) {
		state.Waiting += int(count)
		state.ByAccount[account(queue)] += int(count)
	})
	if err == nil {
		err = s.each(ctx, leasesOfLane, []any{lane, s.db.moment(0)}, func(queue string, count int64) {
			if queue == "" {
				state.Running += int(count)
				return
			}
			// Some of the jobs may have ended since the first count.
			taken := min(int(count), state.ByAccount[account(queue)])
			state.Running += taken
			state.Waiting -= taken
			state.ByAccount[account(queue)] -= taken
		})
	}
	if err == nil {
		state.Runs, err = s.runs(ctx, lane)
	}
	return state, storeError("read the queue of a lane", err)
}

// each passes every row of a query to a function. A row has a string and a number.
func (s *Jobs) each(ctx context.Context, query string, args []any, visit func(string, int64)) error {
	return eachRow(ctx, s.db.lookup, func(r row) error {
		var (
			text   string
			number sql.NullInt64
		)
		err := r.Scan(&text, &number)
		visit(text, number.Int64)
		return err
	}, query, args...)
}

func (s *Jobs) Own(ctx context.Context, j job.Job) (own job.Own, err error) {
	err = s.db.lookup.QueryRowContext(ctx, ownOnLane, j.Lane, j.Account, j.ID).Scan(&own.Before, &own.After)
	return own, storeError("read an account's position in the queue", err)
}
