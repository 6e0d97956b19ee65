package sqlite

import (
	"context"
	"database/sql"
)

type row interface{ Scan(into ...any) error }

// source runs queries. It is a pool, a transaction or prepared statements.
type source interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// eachRow calls the function visit for every row of a query, until it returns an error.
func eachRow(ctx context.Context, from source, visit func(row) error, query string, args ...any) error {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := visit(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readAll returns all rows of a query, converted by the function scan.
func readAll[T any](
	ctx context.Context, from source, what string, scan func(row) (T, error), query string, args ...any,
) (all []T, err error) {
	err = eachRow(ctx, from, func(r row) error {
		one, err := scan(r)
		all = append(all, one)
		return err
	}, query, args...)
	if err != nil {
		return nil, storeError(what, err)
	}
	return all, nil
}

// beginList waits for the account's turn to read a list, and starts a transaction for it. The caller must call end
// after its read.
func (db *DB) beginList(ctx context.Context, account string) (tx *sql.Tx, end func(), err error) {
	if !db.lists.Take(ctx, account) {
		return nil, nil, context.Cause(ctx)
	}
	if tx, err = db.lister.BeginTx(ctx, nil); err != nil {
		db.lists.Release(account)
		return nil, nil, err
	}
	return tx, func() {
		_ = tx.Rollback() // nothing was written
		db.lists.Release(account)
	}, nil
}

// listAll is like readAll, but waits for the account's turn.
func listAll[T any](
	ctx context.Context, db *DB, account, what string, scan func(row) (T, error), query string, args ...any,
) ([]T, error) {
	tx, end, err := db.beginList(ctx, account)
	if err != nil {
		return nil, storeError(what, err)
	}
	defer end()
	return readAll(ctx, tx, what, scan, query, args...)
}
