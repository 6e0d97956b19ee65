// Package sqlite keeps the records of one machine in one SQLite file: jobs and
// their queue, files, keys and client tokens, usage and realtime sessions. Once a
// call has returned nil its write is on disk, except for sessions.
//
// Writes run one after another on one connection, whose transactions begin
// immediately, so that none fails halfway for a lock. Reads have connections of
// their own and never wait for a writer. Other processes may open the file at the
// same time; a write then waits its turn for up to busyTimeout and fails with
// fault.Unavailable after it.
//
// A write that meets a full disk fails with fault.StorageFull, changes nothing, and
// succeeds again once there is space.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"modernc.org/sqlite"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/integrity"
	"cutroom/shared/domain/ratelimit"
)

const (
	// busyTimeout is how long a write waits for another process's.
	busyTimeout = 10 * time.Second
	// readers is how many reads run concurrently.
	readers = 4
)

// Options are what a database needs besides its file.
type Options struct {
	// Now is the clock for the end of a job that a delivery reports.
	Now func() time.Time
	// Settled reports whether the clock can be trusted to tell what has expired;
	// nil means always.
	Settled func() bool
	// Reserve holds disk space for what must be written even when the disk is full;
	// nil holds none.
	Reserve Reserve
	// AccountLeases is how many jobs of a lane one account may have leased at once; 0 means
	// any number.
	AccountLeases int
	// Free returns how many more bytes the records that calls create may put on the disk;
	// nil sets no limit.
	Free func() (int64, error)
	// Committed is called with the database's number of durable transactions, after
	// each one of this process and before its call returns; it may be nil. It must
	// not call the database.
	Committed func(writes int64)
}

// Reserve is disk space that is held until it is needed.
type Reserve interface {
	// Held reports whether the space is held.
	Held() bool
	// Release frees the space, and reports whether any was held.
	Release() bool
	// Restore holds the space again if there is enough, and reports whether it is
	// held.
	Restore() bool
}

// DB is an open database. Its methods return the stores that live in it, which are
// valid until Close.
type DB struct {
	writer, reader *sql.DB
	// lookup runs the queries that requests and loops repeat, and changes has the
	// statements of the writer's transactions.
	lookup, changes *statements
	now             func() time.Time
	// settled and reserve are as in Options.
	settled func() bool
	reserve Reserve
	// accountLeases is as in Options.
	accountLeases int
	free          func() (int64, error)
	// records limits the bytes of the records that calls create, by account.
	records *ratelimit.Limiter
	bell    *bell
	// watches wakes the watchers of jobs.
	watches watches
	tokens  groups[credential.Token]
	// committed is called with each count of transactions once that transaction is on disk.
	committed func(writes int64)
	// file identifies the database file that was at path when it was opened.
	path string
	file os.FileInfo
}

// Open opens the file, creating it if necessary, and brings its schema up to date.
// The folder must exist.
//
// Errors: one that names both versions if the file was written by a newer version
// of the program; integrity.ErrLostMain; fault.StorageFull.
func Open(ctx context.Context, path string, options Options) (*DB, error) {
	db, err := connect(path, options)
	if err != nil {
		return nil, err
	}
	if err := db.migratePatiently(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// connect opens the file with the schema that it has.
func connect(path string, options Options) (*DB, error) {
	if options.Now == nil {
		return nil, errors.New("sqlite: no clock")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	// SQLite would delete the log of a database whose main file is missing.
	if err := Present(path); err != nil && !errors.Is(err, integrity.ErrNone) {
		return nil, err
	}
	// The file holds prompts, so only its owner may read it. The files that SQLite
	// puts beside it get its mode.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, storeError("open the database", err)
	}
	info, err := file.Stat()
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, storeError("open the database", err)
	}

	settings := url.Values{
		"_busy_timeout": {strconv.FormatInt(busyTimeout.Milliseconds(), 10)},
		"_dqs":          {"0"},
		"_foreign_keys": {"on"},
		"_synchronous":  {"full"},
		// Rollback data stays in memory, because the folder of temporary files may
		// be on the disk that is full.
		"_pragma": {"temp_store(memory)"},
	}
	settings.Set("_query_only", "on")
	reader, err := openPool(path, settings, readers)
	if err != nil {
		return nil, err
	}
	settings.Del("_query_only")
	settings.Set("_journal_mode", "wal")
	settings.Set("_txlock", "immediate")
	writer, err := openPool(path, settings, 1)
	if err != nil {
		reader.Close()
		return nil, err
	}
	return &DB{
		writer: writer, reader: reader, lookup: newStatements(reader), changes: newStatements(writer),
		now: options.Now, settled: options.Settled, reserve: options.Reserve, free: options.Free,
		records: ratelimit.New(options.Now), committed: options.Committed,
		accountLeases: options.AccountLeases, bell: newBell(), path: path, file: info,
	}, nil
}

// openPool returns a pool of at most size connections, none of which is open yet.
func openPool(path string, settings url.Values, size int) (*sql.DB, error) {
	// The first part of a relative path would be read as the URI's host.
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}

// Close waits for the running reads and writes, refuses new ones and closes the
// file.
func (db *DB) Close() error {
	return errors.Join(db.reader.Close(), db.writer.Close())
}

// Jobs returns the store of jobs.
func (db *DB) Jobs() *Jobs { return &Jobs{db: db} }

// Queue returns the queue of jobs.
func (db *DB) Queue() *Queue { return &Queue{db} }

// Keys returns the store of permanent keys.
func (db *DB) Keys() *Keys { return &Keys{db} }

// write runs a transaction. The context limits the wait for the transaction's turn;
// once begun it runs to its end, so that its result is never lost between the
// commit and the caller.
//
// While the reserve is released it fails with fault.StorageFull: the rest of the
// disk is for writeAnyway.
func (db *DB) write(ctx context.Context, what string, do func(ctx context.Context, tx *transaction) error) error {
	if db.reserve != nil && !db.reserve.Held() && !db.reserve.Restore() {
		return fullError(nil)
	}
	return db.writeNow(ctx, what, do)
}

// writeAnyway is write for what frees space, or must not fail for lack of it: it
// releases the reserve of a full disk. The transaction may then run twice.
func (db *DB) writeAnyway(ctx context.Context, what string,
	do func(ctx context.Context, tx *transaction) error) error {
	err := db.writeNow(ctx, what, do)
	if fault.Is(err, fault.StorageFull) && db.reserve != nil && db.reserve.Release() {
		err = db.writeNow(ctx, what, do)
	}
	return err
}

// writeNow runs a durable transaction, and counts it.
func (db *DB) writeNow(ctx context.Context, what string, do func(ctx context.Context, tx *transaction) error) error {
	return db.inTurn(ctx, what, func(ctx context.Context, t *turn) error { return t.transactCounted(ctx, do) })
}

// writeVolatile is write for what means nothing after a restart of the machine: it
// survives the process, but need not reach the disk first.
func (db *DB) writeVolatile(ctx context.Context, what string,
	do func(ctx context.Context, tx *transaction) error) error {
	return db.inTurn(ctx, what, func(ctx context.Context, t *turn) error {
		if _, err := t.conn.ExecContext(ctx, "pragma synchronous = normal"); err != nil {
			return err
		}
		defer func() { // also after a panic
			if _, err := t.conn.ExecContext(ctx, "pragma synchronous = full"); err != nil {
				// Its settings could not be restored: no other write may use the
				// connection.
				_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
			}
		}()
		return t.transact(ctx, do)
	})
}

// transact runs a transaction to its end.
func transact(ctx context.Context, conn *sql.Conn, do func(ctx context.Context, tx *sql.Tx) error) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// querier is what reads of one row need, in a transaction or outside.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// millis converts a time to its stored form.
func millis(t time.Time) int64 { return t.UnixMilli() }

// timeOf converts a stored time; null is the zero time.
func timeOf(stored sql.NullInt64) time.Time {
	if !stored.Valid {
		return time.Time{}
	}
	return time.UnixMilli(stored.Int64).UTC()
}
