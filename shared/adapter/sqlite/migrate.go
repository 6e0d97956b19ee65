package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"
)

// baseline is the schema's version in release 0.1.0, the oldest that this program opens.
const baseline = 29

// migrations are numbered from baseline without gaps. A released one is never edited: a
// change of the schema is a new file.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migratePatiently retries migrate while other processes open the file at the same
// moment: if two of them initialize a new file, SQLite fails one at once, because
// each would wait for the other.
func (db *DB) migratePatiently(ctx context.Context) error {
	const pause = 5 * time.Millisecond
	for begun := time.Now(); ; {
		err := db.migrate(ctx)
		if !isBusy(err) || time.Since(begun) >= busyTimeout {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// migrate brings the schema to the newest version, in one transaction: a new file
// waits for the disk once, not for every step. The version is the file's user_version,
// which the transaction covers, so that two processes that open a new file run each
// step once.
func (db *DB) migrate(ctx context.Context) error {
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	// Check without writing first, so that opening an up-to-date file waits for no
	// other process.
	current, err := versionOf(ctx, db.writer)
	if err != nil {
		return storeError("read the schema's version", err)
	}
	newest := baseline + len(steps) - 1
	if err := checkVersion(current, newest); err != nil {
		return err
	}
	if current == newest {
		return nil
	}
	return db.writeSchema(ctx, func(ctx context.Context, tx *sql.Tx) error {
		current, err := versionOf(ctx, tx)
		if err != nil {
			return err
		}
		for _, name := range steps[max(0, current-baseline+1):] {
			step, err := migrations.ReadFile(name)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, string(step)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("pragma user_version = %d", newest))
		return err
	})
}

// newestVersion returns the version of this program's schema.
func newestVersion() (int, error) {
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	return baseline + len(steps) - 1, err
}

// checkVersion returns an error if this program cannot open a schema of the version. 0 is a
// new file.
func checkVersion(version, newest int) error {
	switch {
	case version > newest:
		return fmt.Errorf("sqlite: the database has version %d, which is newer than version %d of this program: use the "+
			"program that wrote it, or a later one", version, newest)
	case version != 0 && version < baseline:
		return fmt.Errorf("sqlite: the database has version %d, which is older than version %d of release 0.1.0: open it "+
			"with release 0.1.0 first", version, baseline)
	}
	return nil
}

// writeSchema is write for the schema, which includes the table that counts writes.
func (db *DB) writeSchema(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	conn, err := db.writer.Conn(ctx)
	if err != nil {
		return storeError("migrate", err)
	}
	defer conn.Close()
	return storeError("migrate", transact(context.WithoutCancel(ctx), conn, do))
}

// versionOf returns the version of the schema, 0 for a new file.
func versionOf(ctx context.Context, q querier) (version int, err error) {
	err = q.QueryRowContext(ctx, "pragma user_version").Scan(&version)
	return version, err
}
