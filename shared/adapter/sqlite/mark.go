package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"

	"cutroom/shared/domain/integrity"
)

const (
	readMark = "select database, writes from mark"
	// The connection's change count shows whether a transaction changed anything.
	countChanges = "select total_changes()"
	advanceMark  = "update mark set writes = writes + 1 where total_changes() <> ? returning writes"
)

func (db *DB) Mark(ctx context.Context) (integrity.Mark, error) {
	var mark integrity.Mark
	err := db.reader.QueryRowContext(ctx, readMark).Scan(&mark.Database, &mark.Writes)
	return mark, storeError("read the mark", err)
}

// transactCounted runs a transaction and counts it if it changed anything.
func (t *turn) transactCounted(ctx context.Context, do func(ctx context.Context, tx *transaction) error) error {
	var writes int64
	err := t.transact(ctx, func(ctx context.Context, tx *transaction) error {
		var before int64
		if err := tx.QueryRowContext(ctx, countChanges).Scan(&before); err != nil {
			return err
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, advanceMark, before).Scan(&writes)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	// Report while holding the connection, so that counts arrive in order.
	if err == nil && writes > 0 && t.db.committed != nil {
		t.db.committed(writes)
	}
	return err
}

// Probe makes a durable write. It also fails if another file has replaced the database at its path.
func (db *DB) Probe(ctx context.Context) error {
	now, err := os.Stat(db.path)
	if err != nil {
		return storeError("stat the database", err)
	}
	if !os.SameFile(now, db.file) {
		return errors.New("sqlite: another file has replaced the database")
	}
	return db.write(ctx, "probe", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, "update mark set writes = writes")
		return err
	})
}
