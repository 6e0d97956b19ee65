package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// message is a message of the queue; its body is the id of a job. The table is that
// of goqite, which this program used until it needed its own clock: goqite asks the
// machine for the time, and a clock that was set back hid every message.
type message struct {
	id    string
	jobID string
	// receipt is how often it was received.
	receipt int
}

const (
	insertMessage = "insert into goqite (created, queue, body, timeout) values (?1, ?2, ?3, ?1) returning id"
	// The oldest message goes first, even if others were returned since.
	receiveMessage = `update goqite set timeout = ?3, received = received + 1 where id = (
			select id from goqite where queue = ?1 and timeout <= ?2 order by priority desc, created limit 1)
		returning id, body, received`
	hideMessage   = "update goqite set timeout = ? where id = ?"
	deleteMessage = "delete from goqite where id = ?"
)

// messageTime is the table's time format; as text, times sort.
const messageTime = "2006-01-02T15:04:05.000Z"

// moment returns a time, relative to now, in the table's format.
func (db *DB) moment(after time.Duration) string {
	return db.now().Add(after).UTC().Format(messageTime)
}

// sendMessage puts a job into a queue and returns the message's id.
func (db *DB) sendMessage(ctx context.Context, tx *transaction, queue, jobID string) (id string, err error) {
	err = tx.QueryRowContext(ctx, insertMessage, db.moment(0), queue, []byte(jobID)).Scan(&id)
	return id, err
}

// receiveMessage takes the oldest visible message of a queue and hides it for the
// duration of the lease; ok is false if there is none.
func (db *DB) receiveMessage(ctx context.Context, tx *transaction, queue string,
	lease time.Duration) (m message, ok bool, err error) {
	var body []byte
	err = tx.QueryRowContext(ctx, receiveMessage, queue, db.moment(0), db.moment(lease)).Scan(&m.id, &body, &m.receipt)
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	m.jobID = string(body)
	return m, err == nil, err
}

// hideMessage hides a message for the duration from now.
func (db *DB) hideMessage(ctx context.Context, tx *transaction, id string, lease time.Duration) error {
	_, err := tx.ExecContext(ctx, hideMessage, db.moment(lease), id)
	return err
}

// deleteMessage deletes a message.
func (db *DB) deleteMessage(ctx context.Context, tx *transaction, id string) error {
	_, err := tx.ExecContext(ctx, deleteMessage, id)
	return err
}

// ShiftTimes moves deadlines and waits when the clock is set: jobs and batches keep
// the time they have left, leases their remainder, and webhook deliveries their wait.
func (db *DB) ShiftTimes(ctx context.Context, by time.Duration) error {
	return db.writeAnyway(ctx, "move times", func(ctx context.Context, tx *transaction) error {
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
