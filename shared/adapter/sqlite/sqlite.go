// Package sqlite stores the records of one machine in one SQLite file. When a call returns nil, its write is on disk,
// except for sessions.
//
// Writes run one after another on one connection. Their transactions take the write lock when they begin, so that no
// transaction fails halfway because of a lock. Reads have their own connections and never wait for a writer. Accounts
// take turns on the connections for lists. Other processes may open the file at the same time. A write waits for them
// for up to busyTimeout, and then fails with fault.Unavailable.
//
// A write on a full disk fails with fault.StorageFull and changes nothing.
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

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/integrity"
	"cutroom/shared/domain/ratelimit"
)

const (
	// busyTimeout is how long a write waits for another process.
	busyTimeout = 10 * time.Second
	// readers is the maximum number of concurrent reads, not including lists.
	readers = 4
	// listers is the maximum number of concurrent lists. Each account can run one.
	listers = 4
)

type Options struct {
	Now func() time.Time
	// Settled reports whether the clock can be trusted for expiry. If it is nil, the clock is always trusted.
	Settled func() bool
	// Reserve holds disk space for writes that must succeed on a full disk. It may be nil.
	Reserve Reserve
	// If at least AccountLeases of a lane's jobs are leased, an account that has a lease on the lane gets no further
	// lease. 0 means no limit.
	AccountLeases int
	// Free returns how many more bytes of records calls may create. nil means no limit.
	Free func() (int64, error)
	// Committed, if set, is called after each durable transaction of this process, before the store method that made
	// it returns. writes is the database's number of durable transactions. Committed must not call the database.
	Committed func(writes int64)
}

// Reserve is disk space that is held in reserve until a write needs it.
type Reserve interface {
	Held() bool
	// Release frees the space. It returns false if it was not held.
	Release() bool
	// Restore tries to hold the space again, and reports whether it is held.
	Restore() bool
}

// DB is an open database. Its stores are valid until Close.
type DB struct {
	writer, reader, lister *sql.DB
	// lists makes accounts take turns on the connections of lister.
	lists *ratelimit.Turns
	// lookup holds prepared statements for frequent queries. changes holds the writer's prepared statements.
	lookup, changes *statements
	now             func() time.Time
	settled         func() bool
	reserve         Reserve
	accountLeases   int
	free            func() (int64, error)
	records         *ratelimit.Limiter
	bell            *bell
	watches         watches
	committed       func(writes int64)
	path            string
	file            os.FileInfo
}

// Open opens a database, migrates its schema and creates a missing file in an existing folder.
//
// Errors: integrity.ErrLostMain; fault.StorageFull; an error with both versions if a newer version
// of the program wrote the file.
func Open(ctx context.Context, path string, options Options) (*DB, error) {
	db, err := connect(path, options)
	if err != nil {
		return nil, err
	}
	if err := db.migrateWithRetries(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func connect(path string, options Options) (*DB, error) {
	if options.Now == nil {
		return nil, errors.New("sqlite: no clock")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	// If the main file is missing, SQLite would delete the log, so check first.
	if err := Present(path); err != nil && !errors.Is(err, integrity.ErrNone) {
		return nil, err
	}
	// The file contains prompts, so only its owner may read it. SQLite gives its other files the same mode.
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
		// Keep temporary tables in memory, because the folder for temporary files may be on the full disk.
		"_pragma": {"temp_store(memory)"},
	}
	settings.Set("_query_only", "on")
	reader, err := openPool(path, settings, readers)
	if err != nil {
		return nil, err
	}
	lister, err := openPool(path, settings, listers)
	if err != nil {
		reader.Close()
		return nil, err
	}
	settings.Del("_query_only")
	settings.Set("_journal_mode", "wal")
	settings.Set("_txlock", "immediate")
	writer, err := openPool(path, settings, 1)
	if err != nil {
		reader.Close()
		lister.Close()
		return nil, err
	}
	return &DB{
		writer: writer, reader: reader, lister: lister, lists: ratelimit.NewTurns(listers, listers-1),
		lookup: newStatements(reader), changes: newStatements(writer),
		now: options.Now, settled: options.Settled, reserve: options.Reserve, free: options.Free,
		records: ratelimit.New(options.Now), committed: options.Committed,
		accountLeases: options.AccountLeases, bell: &bell{next: make(chan struct{})}, path: path, file: info,
	}, nil
}

// openPool does not open a connection yet.
func openPool(path string, settings url.Values, size int) (*sql.DB, error) {
	// Make the path absolute, because in a URI the first element of a relative path would be the host.
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

// Close rejects new reads and writes, waits for running reads and writes, and closes the file.
func (db *DB) Close() error {
	return errors.Join(db.reader.Close(), db.lister.Close(), db.writer.Close())
}

func (db *DB) Jobs() *Jobs   { return &Jobs{db: db} }
func (db *DB) Queue() *Queue { return &Queue{db} }
func (db *DB) Keys() *Keys   { return &Keys{db} }

// write runs a durable transaction. The context limits only the wait for the writer. A transaction
// that has started always runs to its end, so that its result is never lost. While the reserve is
// released, write returns fault.StorageFull.
func (db *DB) write(ctx context.Context, what string, do func(ctx context.Context, tx *transaction) error) error {
	if db.reserve != nil && !db.reserve.Held() && !db.reserve.Restore() {
		return fullError(nil)
	}
	return db.writeNow(ctx, what, do)
}

// writeAnyway is for changes that free space or must not fail for lack of space. On a full disk it
// releases the reserve, and may then run the transaction a second time.
func (db *DB) writeAnyway(ctx context.Context, what string,
	do func(ctx context.Context, tx *transaction) error) error {
	err := db.writeNow(ctx, what, do)
	if fault.Is(err, fault.StorageFull) && db.reserve != nil && db.reserve.Release() {
		err = db.writeNow(ctx, what, do)
	}
	return err
}

func (db *DB) writeNow(ctx context.Context, what string, do func(ctx context.Context, tx *transaction) error) error {
	return db.inTurn(ctx, what, func(ctx context.Context, t *turn) error { return t.transactCounted(ctx, do) })
}

// writeVolatile is for records that are useless after a reboot. They are not synced to disk.
func (db *DB) writeVolatile(ctx context.Context, what string,
	do func(ctx context.Context, tx *transaction) error) error {
	return db.inTurn(ctx, what, func(ctx context.Context, t *turn) error {
		if _, err := t.conn.ExecContext(ctx, "pragma synchronous = normal"); err != nil {
			return err
		}
		defer func() { // runs even after a panic
			if _, err := t.conn.ExecContext(ctx, "pragma synchronous = full"); err != nil {
				// The setting could not be restored, so drop the connection.
				_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
			}
		}()
		return t.transact(ctx, do)
	})
}

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

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func millis(t time.Time) int64 { return t.UnixMilli() }

// timeOf converts null to the zero time.
func timeOf(stored sql.NullInt64) time.Time {
	if !stored.Valid {
		return time.Time{}
	}
	return time.UnixMilli(stored.Int64).UTC()
}
