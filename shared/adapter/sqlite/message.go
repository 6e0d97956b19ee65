package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"cutroom/shared/domain/job"
)

// message is a message whose body is a job's id. The table has goqite's layout. The times come from
// the database's clock, because setting back a wall clock would hide every message.
type message struct {
	id      string
	jobID   string
	receipt int // the number of receives so far
}

const (
	insertMessage = `insert into goqite (created, queue, body, timeout, priority) values (?1, ?2, ?3, ?1, ?4)
		returning id`
	// Receive jobs with low priority last, and otherwise the oldest first, even if it was returned to the queue after
	// others. If ?4 is true, receive only brief jobs.
	receiveMessage = `update goqite set timeout = ?3, received = received + 1 where id = (
			select id from goqite where queue = ?1 and timeout <= ?2 and priority >= iif(?4, 1, -1)
			order by priority < 0, created limit 1)
		returning id, body, received`
	hideMessage   = "update goqite set timeout = ? where id = ?"
	deleteMessage = "delete from goqite where id = ?"
)

// messageTime is a time layout whose strings sort by time.
const messageTime = "2006-01-02T15:04:05.000Z"

func (db *DB) moment(after time.Duration) string {
	return db.now().Add(after).UTC().Format(messageTime)
}

func (db *DB) sendMessage(ctx context.Context, tx *transaction, j job.Job) (id string, err error) {
	priority := 0
	switch {
	case j.Low():
		priority = -1
	case j.Brief():
		priority = 1
	}
	err = tx.QueryRowContext(ctx, insertMessage, db.moment(0), queueName(j.Lane, j.Account), []byte(j.ID), priority).Scan(&id)
	return id, err
}

// receiveMessage takes the oldest visible message of a queue and hides it until the lease ends.
func (db *DB) receiveMessage(ctx context.Context, tx *transaction, queue string,
	lease time.Duration, brief bool) (m message, ok bool, err error) {
	var body []byte
	err = tx.QueryRowContext(ctx, receiveMessage, queue, db.moment(0), db.moment(lease), brief).Scan(&m.id, &body, &m.receipt)
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	m.jobID = string(body)
	return m, err == nil, err
}

func (db *DB) hideMessage(ctx context.Context, tx *transaction, id string, lease time.Duration) error {
	_, err := tx.ExecContext(ctx, hideMessage, db.moment(lease), id)
	return err
}

func (db *DB) deleteMessage(ctx context.Context, tx *transaction, id string) error {
	_, err := tx.ExecContext(ctx, deleteMessage, id)
	return err
}

// ShiftTimes shifts deadlines and wait times when the system clock is changed, so that work keeps
// the time it has left.
func (db *DB) ShiftTimes(ctx context.Context, by time.Duration) error {
	return db.writeAnyway(ctx, "shift times", func(ctx context.Context, tx *transaction) error {
		if _, err := tx.ExecContext(ctx, "update job set deadline = deadline + ? where completed_at is null",
			by.Milliseconds()); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "update webhook set due = due + ? where due is not null",
			by.Milliseconds()); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "update batch set expires_at = expires_at + ? where ended_at is null",
			by.Milliseconds()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `update goqite set
			timeout = strftime('%Y-%m-%dT%H:%M:%fZ', timeout, ?1), created = strftime('%Y-%m-%dT%H:%M:%fZ', created, ?1)`,
			fmt.Sprintf("%+.3f seconds", by.Seconds()))
		return err
	})
}
