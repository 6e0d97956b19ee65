package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"cutroom/shared/domain/audit"
)

type Audit struct{ db *DB }

var _ audit.Log = (*Audit)(nil)

func (db *DB) Audit() *Audit { return &Audit{db} }

func (a *Audit) Entries(ctx context.Context, account string, query audit.Query) ([]audit.Entry, error) {
	low, high := query.Range()
	return listAll(ctx, a.db, account, "read the audit log", func(r row) (audit.Entry, error) {
		var at int64
		var before, after string
		e := audit.Entry{Account: account}
		err := r.Scan(&e.ID, &at, &e.By, &e.Action, &e.Subject, &before, &after, &e.RequestID)
		e.At = time.UnixMilli(at).UTC()
		if before != "" {
			e.Before = json.RawMessage(before)
		}
		if after != "" {
			e.After = json.RawMessage(after)
		}
		return e, err
	}, `select id, at, by, action, subject, before, after, request_id
		from audit where account = ? and id >= ? and id < ? order by id desc limit ?`, account, low, high, query.Limit)
}

const forgottenAtOnce = 500

// note adds an entry. If the clock can be trusted, it also deletes expired entries.
func (db *DB) note(ctx context.Context, tx *transaction, e audit.Entry) error {
	if _, err := tx.ExecContext(ctx, `insert into audit (account, id, at, by, action, subject, before, after, request_id)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
		e.Account, e.ID, millis(e.At), e.By, e.Action, e.Subject, string(e.Before), string(e.After), e.RequestID,
	); err != nil {
		return err
	}
	if db.settled != nil && !db.settled() {
		return nil
	}
	_, err := tx.ExecContext(ctx, `delete from audit where (account, id) in
		(select account, id from audit where at < ? order by at limit ?)`, millis(db.now().Add(-audit.Kept)), forgottenAtOnce)
	return err
}
