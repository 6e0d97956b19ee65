package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
)

// Webhooks stores the webhooks to deliver. The transaction that ends a job, or records a budget
// warning, also adds the webhook's row, so that a crash cannot lose it.
type Webhooks struct{ db *DB }

var (
	_ webhook.Store = (*Webhooks)(nil)
	_ webhook.Queue = (*Webhooks)(nil)
)

func (db *DB) Webhooks() *Webhooks { return &Webhooks{db} }

func queueWebhook(ctx context.Context, tx *transaction, j job.Job) error {
	if !j.Notifies() {
		return nil
	}
	_, err := tx.ExecContext(ctx, "insert into webhook (id, job, account, due) values (?, ?, ?, ?)", j.ID, j.ID, j.Account,
		millis(j.CompletedAt))
	return err
}

const (
	attemptsOf = "select number, at, duration, status, error, next from webhook_attempt where id = ? order by number"

	// Accounts take turns: every account's first attempt comes before any account's second. Only ?2 attempts of each
	// account are read, because an account may have any number.
	dueWebhooks = `with recursive accounts (account) as (
			select min(account) from webhook where due is not null
			union all
			select (select min(account) from webhook where due is not null and account > accounts.account)
			from accounts where account is not null)
		select id, account, made + 1, due from (
			select id, w.account, due, row_number() over (partition by w.account order by due, id) as turn,
				(select count(*) from webhook_attempt where webhook_attempt.id = w.id) as made
			from accounts cross join webhook w on w.id in (
				select id from webhook where account = accounts.account and due <= ?1 order by due, id limit ?2))
		order by turn, due, id limit ?3`
)

func (s *Webhooks) Attempts(ctx context.Context, id string) ([]webhook.Attempt, error) {
	return readAll(ctx, s.db.reader, "read the attempts of a webhook", scanAttempt, attemptsOf, id)
}

func scanAttempt(r row) (webhook.Attempt, error) {
	var (
		a            webhook.Attempt
		at, duration int64
		next         sql.NullInt64
	)
	err := r.Scan(&a.Number, &at, &duration, &a.Status, &a.Error, &next)
	a.At, a.Duration, a.Next = time.UnixMilli(at).UTC(), time.Duration(duration)*time.Millisecond, timeOf(next)
	return a, err
}

func (s *Webhooks) Record(ctx context.Context, e webhook.Event, a webhook.Attempt) error {
	next := sql.NullInt64{Int64: millis(a.Next), Valid: !a.Next.IsZero()}
	return s.db.write(ctx, "record a webhook attempt", func(ctx context.Context, tx *transaction) error {
		var made int
		err := tx.QueryRowContext(ctx, `select (select count(*) from webhook_attempt where id = webhook.id)
			from webhook where id = ?`, e.ID).Scan(&made)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return fault.New(fault.NotFound, "The event has no receiver.")
		case err != nil:
			return err
		case made >= a.Number:
			return recordedBefore(ctx, tx, e.ID, a)
		case made != a.Number-1:
			return webhook.ErrNotNext
		}
		if _, err := tx.ExecContext(ctx, `insert into webhook_attempt (id, number, at, duration, status, error, next)
			values (?, ?, ?, ?, ?, ?, ?)`,
			e.ID, a.Number, millis(a.At), a.Duration.Milliseconds(), a.Status, a.Error, next); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "update webhook set due = ? where id = ?", next, e.ID)
		return err
	})
}

// recordedBefore returns an error unless the same attempt is recorded under this number.
func recordedBefore(ctx context.Context, tx *transaction, id string, a webhook.Attempt) error {
	var at int64
	err := tx.QueryRowContext(ctx, "select at from webhook_attempt where id = ? and number = ?", id,
		a.Number).Scan(&at)
	if err == nil && at != millis(a.At) {
		return webhook.ErrNotNext
	}
	return err
}

func (s *Webhooks) Due(ctx context.Context, now time.Time, ofAccount, limit int) ([]webhook.ScheduledAttempt, error) {
	return readAll(ctx, s.db.lookup, "find due webhooks", func(r row) (turn webhook.ScheduledAttempt, err error) {
		var due int64
		err = r.Scan(&turn.Event, &turn.Account, &turn.Number, &due)
		turn.At = time.UnixMilli(due).UTC()
		return turn, err
	}, dueWebhooks, millis(now), ofAccount, limit)
}
