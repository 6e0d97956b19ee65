package sqlite

import (
	"context"
	"database/sql"
)

// transaction reuses prepared statements of earlier transactions, because parsing a statement and
// its table's triggers takes longer than running it.
type transaction struct {
	tx    *sql.Tx
	known *statements
	// missed lists the statements that had not been prepared.
	prepared map[string]*sql.Stmt
	missed   []string
}

var _ querier = (*transaction)(nil)

func (t *transaction) ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error) {
	prepared, err := t.prepare(ctx, statement)
	if err != nil {
		return nil, err
	}
	return prepared.ExecContext(ctx, args...)
}

// The row returned by QueryRowContext must be scanned before the same query runs again.
func (t *transaction) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	prepared, err := t.prepare(ctx, query)
	if err != nil {
		return t.tx.QueryRowContext(ctx, query, args...) // only the sql.Tx can return a row that has an error
	}
	return prepared.QueryRowContext(ctx, args...)
}

// turn is a write's exclusive use of the writer connection.
type turn struct {
	db     *DB
	conn   *sql.Conn
	missed []string
}

// inTurn waits for the writer and then calls the function `do`, which runs to its end even if the context ends.
func (db *DB) inTurn(ctx context.Context, what string, do func(ctx context.Context, t *turn) error) error {
	t := &turn{db: db}
	err := t.take(ctx, do)
	// Prepare statements only now, because preparing needs the connection.
	for _, statement := range t.missed {
		_, _ = db.changes.prepare(ctx, statement)
	}
	return storeError(what, err)
}

func (t *turn) take(ctx context.Context, do func(ctx context.Context, t *turn) error) (err error) {
	if t.conn, err = t.db.writer.Conn(ctx); err != nil {
		return err
	}
	defer t.conn.Close()
	return do(context.WithoutCancel(ctx), t)
}

func (t *turn) transact(ctx context.Context, do func(ctx context.Context, tx *transaction) error) error {
	return transact(ctx, t.conn, func(ctx context.Context, tx *sql.Tx) error {
		statements := &transaction{tx: tx, known: t.db.changes, prepared: map[string]*sql.Stmt{}}
		defer func() { t.missed = statements.missed }()
		return do(ctx, statements)
	})
}

// prepare returns a statement that is valid until the end of the transaction.
func (t *transaction) prepare(ctx context.Context, statement string) (*sql.Stmt, error) {
	if prepared, ok := t.prepared[statement]; ok {
		return prepared, nil
	}
	var prepared *sql.Stmt
	if known, ok := t.known.find(statement); ok {
		prepared = t.tx.StmtContext(ctx, known)
	} else {
		var err error
		if prepared, err = t.tx.PrepareContext(ctx, statement); err != nil {
			return nil, err
		}
		t.missed = append(t.missed, statement)
	}
	t.prepared[statement] = prepared
	return prepared, nil
}
