package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cutroom/shared/domain/response"
)

type Responses struct{ db *DB }

var _ response.Store = (*Responses)(nil)

func (db *DB) Responses() *Responses { return &Responses{db} }

const (
	keepResponse = `insert or replace into response (account, id, content, ends, kept_at)
		values (?1, ?2, ?3, ?4 + coalesce((select max(ends) from response where account = ?1), 0), ?5)`
	dropOldest = `delete from response where account = ?1
		and ends <= (select max(ends) from response where account = ?1) - ?2`
	findResponse = "select content from response where account = ? and id = ? and kept_at > ?"
)

func (r *Responses) Keep(ctx context.Context, account, id string, content []byte, now time.Time) error {
	if err := r.db.checkFree(); err != nil {
		return err
	}
	return r.db.writeVolatile(ctx, "keep a response", func(ctx context.Context, tx *transaction) error {
		size := len(content) + response.BytesEach
		if _, err := tx.ExecContext(ctx, keepResponse, account, id, content, size, millis(now)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, dropOldest, account, response.AccountBytes)
		return err
	})
}

func (r *Responses) Find(ctx context.Context, account, id string, now time.Time) (content []byte, err error) {
	err = r.db.lookup.QueryRowContext(ctx, findResponse, account, id, millis(now.Add(-response.Age))).Scan(&content)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return content, storeError("find a response", err)
}

func (r *Responses) Delete(ctx context.Context, account, id string) error {
	return r.db.writeAnyway(ctx, "delete a response", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, "delete from response where account = ? and id = ?", account, id)
		return err
	})
}

// Sweep deletes expired responses.
func (r *Responses) Sweep(ctx context.Context, now time.Time) error {
	return r.db.writeAnyway(ctx, "delete responses", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, "delete from response where kept_at <= ?", millis(now.Add(-response.Age)))
		return err
	})
}
