package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"
)

// baseline is the schema version of release 0.1.0, the oldest release whose files this program can open.
const baseline = 29

// migrations are numbered from baseline without gaps. Never edit a released migration.
//
//go:embed migrations/*.sql
var migrations embed.FS

// If two processes initialize a new file concurrently, SQLite makes one of them fail.
func (db *DB) migrateWithRetries(ctx context.Context) error {
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

// migrate updates the schema in one transaction, so that a new file waits for the disk only once.
// The schema version is the file's user_version, so concurrent processes run each step only once.
func (db *DB) migrate(ctx context.Context) error {
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	// Read first, so that opening an up-to-date file does not wait for writers.
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

func newestVersion() (int, error) {
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	return baseline + len(steps) - 1, err
}

// A new file has version 0.
func checkVersion(version, newest int) error {
	switch {
	case version > newest:
		return fmt.Errorf("sqlite: the database has version %d, but this program supports only versions up to %d: use the "+
			"program that wrote it, or a later version", version, newest)
	case version != 0 && version < baseline:
		return fmt.Errorf("sqlite: the database has version %d, but the oldest supported version is %d (release 0.1.0): open it "+
			"with release 0.1.0 first", version, baseline)
	}
	return nil
}

// writeSchema does not count the transaction, because migrations may create the table that counts writes.
func (db *DB) writeSchema(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	conn, err := db.writer.Conn(ctx)
	if err != nil {
		return storeError("migrate", err)
	}
	defer conn.Close()
	return storeError("migrate", transact(context.WithoutCancel(ctx), conn, do))
}

func versionOf(ctx context.Context, q querier) (version int, err error) {
	err = q.QueryRowContext(ctx, "pragma user_version").Scan(&version)
	return version, err
}
