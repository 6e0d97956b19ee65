package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/usage"
)

type Batches struct{ db *DB }

var (
	_ batch.Store     = (*Batches)(nil)
	_ batch.Progress  = (*Batches)(nil)
	_ batch.Retention = (*Batches)(nil)
)

func (db *DB) Batches() *Batches { return &Batches{db} }

const (
	batchColumns = "id, account, status, answered, failed, expires_at, ended_at, record"

	batchByID      = "select " + batchColumns + " from batch where id = ? and account = ?"
	batchPage      = "select " + batchColumns + " from batch where account = ? and id < ? order by id desc limit ?"
	openBatches    = "select " + batchColumns + " from batch indexed by batch_open where ended_at is null order by id"
	endedBatches   = "select " + batchColumns + " from batch where ended_at is not null and kept = 1 order by ended_at limit ?"
	openBatchCount = "select count(*) from batch indexed by batch_open where ended_at is null and account = ?"
	afterBatches   = "batch`" // sorts after every id
	// oldBatches deletes all of an account's cleared batches except the newest.
	oldBatches = "delete from batch where account = ?1 and kept = 0 and id <= " +
		"(select id from batch indexed by batch_by_account where account = ?1 order by id desc limit 1 offset ?2)"
	forgottenBatch = "delete from batch where ended_at < ? and kept = 0"
)

func (s *Batches) Create(ctx context.Context, b batch.Batch, most, kept int) error {
	record, err := json.Marshal(b)
	if err != nil {
		return storeError("create a batch", err)
	}
	if err := s.db.admit(ctx, b.Account, len(record)); err != nil {
		return err
	}
	return s.db.write(ctx, "create a batch", func(ctx context.Context, tx *transaction) error {
		var open int
		if err := tx.QueryRowContext(ctx, openBatchCount, b.Account).Scan(&open); err != nil {
			return err
		}
		if most > 0 && open >= most {
			return fault.New(fault.Limited, "The account has reached its limit of open batches (%d).", open)
		}
		_, err := tx.ExecContext(ctx, `insert into batch
			(id, account, status, answered, failed, expires_at, ended_at, kept, record) values (?, ?, ?, 0, 0, ?, ?, 1, ?)`,
			b.ID, b.Account, b.Status, millis(b.ExpiresAt), optionalMillis(b.EndedAt), string(record))
		if err == nil && kept > 0 {
			_, err = tx.ExecContext(ctx, oldBatches, b.Account, kept)
		}
		return err
	})
}

func (s *Batches) Get(ctx context.Context, account, id string) (batch.Batch, error) {
	b, err := scanBatch(s.db.lookup.QueryRowContext(ctx, batchByID, id, account))
	return b, storeError("get a batch", err)
}

func (s *Batches) List(ctx context.Context, account, after string, limit int) ([]batch.Batch, error) {
	if after == "" {
		after = afterBatches
	}
	return listAll(ctx, s.db, account, "list batches", scanBatch, batchPage, account, after, limit)
}

func (s *Batches) Open(ctx context.Context) ([]batch.Batch, error) {
	return readAll(ctx, s.db.reader, "list open batches", scanBatch, openBatches)
}

func (s *Batches) Finished(ctx context.Context, limit int) ([]batch.Batch, error) {
	return readAll(ctx, s.db.reader, "list ended batches", scanBatch, endedBatches, limit)
}

func (s *Batches) Change(ctx context.Context, from batch.Status, b batch.Batch) error {
	read := b.Revision
	b.Revision++
	record, err := json.Marshal(b)
	if err != nil {
		return storeError("change a batch", err)
	}
	return s.db.writeAnyway(ctx, "change a batch", func(ctx context.Context, tx *transaction) error {
		var (
			status   batch.Status
			revision int
		)
		// A record without a revision has revision 0.
		err := tx.QueryRowContext(ctx, "select status, coalesce(record ->> 'Revision', 0) from batch where id = ? and account = ?",
			b.ID, b.Account).Scan(&status, &revision)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return batch.ErrNotFound
		case err != nil:
			return err
		case status != from:
			return fault.New(fault.Conflict, "The batch's status is %s.", status)
		case revision != read:
			return fault.New(fault.Conflict, "The batch has changed.")
		}
		_, err = tx.ExecContext(ctx, "update batch set status = ?, expires_at = ?, ended_at = ?, record = ? where id = ?",
			b.Status, millis(b.ExpiresAt), optionalMillis(b.EndedAt), string(record), b.ID)
		return err
	})
}

func (s *Batches) Save(ctx context.Context, id string, chunks []batch.Chunk, used []usage.Record) error {
	return s.db.write(ctx, "save the results of a batch", func(ctx context.Context, tx *transaction) error {
		var ended bool
		err := tx.QueryRowContext(ctx, "select ended_at is not null from batch where id = ?", id).Scan(&ended)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return batch.ErrNotFound
		case err != nil:
			return err
		case ended:
			return batch.ErrEnded
		}
		var answered, failed, added int
		for _, c := range chunks {
			lines, err := json.Marshal(c.Lines)
			if err != nil {
				return err
			}
			done, err := tx.ExecContext(ctx, `insert into batch_chunk (batch, number, blob, failures, lines)
				values (?, ?, ?, ?, ?) on conflict do nothing`, id, c.Number, c.Blob, c.Failures, string(lines))
			if err != nil {
				return err
			}
			n, err := done.RowsAffected()
			if err != nil {
				return err
			}
			if added += int(n); n == 0 {
				if err := isKept(ctx, tx, id, c); err != nil {
					return err
				}
				continue
			}
			if c.Failures {
				failed += len(c.Lines)
			} else {
				answered += len(c.Lines)
			}
		}
		changed, err := tx.ExecContext(ctx,
			"update batch set answered = answered + ?, failed = failed + ? where id = ?", answered, failed, id)
		if err := oneOf(changed, err); err != nil || added == 0 {
			return err
		}
		return addUsage(ctx, tx, used, s.db.now())
	})
}

// isKept returns an error if a different chunk is stored under this number.
func isKept(ctx context.Context, tx *transaction, id string, c batch.Chunk) error {
	var blob string
	err := tx.QueryRowContext(ctx, "select blob from batch_chunk where batch = ? and number = ?", id, c.Number).Scan(&blob)
	if err == nil && blob != c.Blob {
		return fault.New(fault.Conflict, "Another process has already stored results of the batch.")
	}
	return err
}

func (s *Batches) Chunks(ctx context.Context, id string) ([]batch.Chunk, error) {
	return readAll(ctx, s.db.reader, "read a batch's chunks", func(r row) (c batch.Chunk, err error) {
		var lines string
		if err := r.Scan(&c.Number, &c.Blob, &c.Failures, &lines); err != nil {
			return c, err
		}
		return c, json.Unmarshal([]byte(lines), &c.Lines)
	}, "select number, blob, failures, lines from batch_chunk where batch = ? order by number", id)
}

func (s *Batches) Cleared(ctx context.Context, id string) error {
	return s.db.writeAnyway(ctx, "clear a batch", func(ctx context.Context, tx *transaction) error {
		if _, err := tx.ExecContext(ctx, "delete from batch_chunk where batch = ?", id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "update batch set kept = 0 where id = ? and ended_at is not null", id)
		return err
	})
}

func (s *Batches) Forget(ctx context.Context, before time.Time) error {
	var old bool
	err := s.db.lookup.QueryRowContext(ctx, "select exists (select 1 from batch where ended_at < ? and kept = 0)",
		millis(before)).Scan(&old)
	if err != nil || !old {
		return storeError("look up old batches", err)
	}
	return s.db.writeAnyway(ctx, "forget batches", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, forgottenBatch, millis(before))
		return err
	})
}

func (s *Batches) Known(ctx context.Context, id string) (known bool, err error) {
	err = s.db.reader.QueryRowContext(ctx, "select exists (select 1 from batch where id = ? and kept = 1)", id).Scan(&known)
	return known, storeError("look up a batch", err)
}

func scanBatch(r row) (batch.Batch, error) {
	var (
		b                   batch.Batch
		id, account, record string
		status              batch.Status
		answered, failed    int
		expiresAt           int64
		endedAt             sql.NullInt64
	)
	err := r.Scan(&id, &account, &status, &answered, &failed, &expiresAt, &endedAt, &record)
	if errors.Is(err, sql.ErrNoRows) {
		return b, batch.ErrNotFound
	}
	if err == nil {
		err = json.Unmarshal([]byte(record), &b)
	}
	b.ID, b.Account, b.Status, b.Answered, b.Failed = id, account, status, answered, failed
	b.ExpiresAt, b.EndedAt = time.UnixMilli(expiresAt).UTC(), timeOf(endedAt)
	return b, err
}
