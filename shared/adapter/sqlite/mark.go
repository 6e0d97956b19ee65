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
	// The connection's number of changes shows whether a transaction changed
	// anything; if not, it needs no write.
	countChanges = "select total_changes()"
	advanceMark  = "update mark set writes = writes + 1 where total_changes() <> ? returning writes"
)

// Mark returns the mark of the database as it is now.
func (db *DB) Mark(ctx context.Context) (integrity.Mark, error) {
	var mark integrity.Mark
	err := db.reader.QueryRowContext(ctx, readMark).Scan(&mark.Database, &mark.Writes)
	return mark, storeError("read the mark", err)
}

// marking counts the durable transactions. Its statements are prepared, because
// every write runs them.
type marking struct {
	changes, advance *sql.Stmt
	// committed is called with each count once its transaction is on disk.
	committed func(writes int64)
}

// prepareMarking makes the writer count.
func (db *DB) prepareMarking(ctx context.Context, committed func(int64)) (err error) {
	db.marking.committed = committed
	if db.marking.changes, err = db.writer.PrepareContext(ctx, countChanges); err == nil {
		db.marking.advance, err = db.writer.PrepareContext(ctx, advanceMark)
	}
	return storeError("count writes", err)
}

// transact runs a transaction to its end, and counts it if it changes anything.
func (m *marking) transact(ctx context.Context, conn *sql.Conn, do func(ctx context.Context, tx *sql.Tx) error) error {
	var writes int64
	err := transact(ctx, conn, func(ctx context.Context, tx *sql.Tx) error {
		var before int64
		if err := tx.StmtContext(ctx, m.changes).QueryRowContext(ctx).Scan(&before); err != nil {
			return err
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		err := tx.StmtContext(ctx, m.advance).QueryRowContext(ctx, before).Scan(&writes)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	// Called while the connection is held, so that counts arrive in order.
	if err == nil && writes > 0 && m.committed != nil {
		m.committed(writes)
	}
	return err
}

// Probe writes to the database as acknowledged writes do. It returns an error if
// that fails, or if the file at the path is no longer the one that is open.
func (db *DB) Probe(ctx context.Context) error {
	now, err := os.Stat(db.path)
	if err != nil {
		return storeError("look at the database", err)
	}
	if !os.SameFile(now, db.file) {
		return errors.New("sqlite: another file has taken the database's place")
	}
	return db.write(ctx, "probe", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "update mark set writes = writes")
		return err
	})
}
