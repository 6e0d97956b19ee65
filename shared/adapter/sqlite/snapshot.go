package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"cutroom/shared/domain/integrity"
	"cutroom/shared/platform/durable"
)

// Snapshot writes a copy of the database at the path, as of one moment, to the path
// into, which must not exist, and checks the copy. The database may be in use; it is not
// changed, and its writers do not wait.
//
// Errors: integrity.ErrNone, ErrLostMain, ErrDamaged; one that says so if a newer version of
// the program wrote it; others of the file system.
func Snapshot(ctx context.Context, path, into string) error {
	if err := Present(path); err != nil {
		return err
	}
	pool, err := openPool(path, url.Values{
		"mode": {"ro"}, "_busy_timeout": {strconv.FormatInt(busyTimeout.Milliseconds(), 10)},
	}, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := checkKnown(ctx, pool); err != nil {
		return err
	}
	if _, err = pool.ExecContext(ctx, "vacuum into ?", into); err != nil {
		return damage("copy the database", err)
	}
	return checkCopy(ctx, into)
}

// checkCopy checks all pages and references of a snapshot.
//
// Errors: integrity.ErrDamaged; others of the file system.
func checkCopy(ctx context.Context, path string) error {
	pool, err := openPool(path, url.Values{"mode": {"ro"}}, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := checkPages(ctx, pool); err != nil {
		return damage("check the copy of the database", err)
	}
	return damage("check the copy of the database", checkReferences(ctx, pool))
}

// placeCheck bounds the check of a database that is placed.
const placeCheck = time.Minute

// Place writes what Snapshot has written to the path, where there is no database yet.
// The database is there whole or not at all.
//
// Errors: that of the reader; integrity.ErrDamaged; one that says so if there is a database,
// or if a newer version of the program wrote the snapshot; others of the file system.
func Place(ctx context.Context, path string, snapshot io.Reader) error {
	if err := Present(path); !errors.Is(err, integrity.ErrNone) {
		return errors.Join(fmt.Errorf("sqlite: %s is there already", path), err)
	}
	err := durable.Write(path, snapshot, func(part string) error {
		if _, err := Inspect(ctx, part, placeCheck); err != nil {
			return err
		}
		pool, err := openPool(part, url.Values{"mode": {"ro"}}, 1)
		if err != nil {
			return err
		}
		return errors.Join(checkKnown(ctx, pool), pool.Close())
	})
	if err != nil {
		return fmt.Errorf("sqlite: place the database: %w", err)
	}
	return nil
}

// checkKnown fails unless a database is one of this version of the program or of an earlier
// one.
func checkKnown(ctx context.Context, pool *sql.DB) error {
	steps, err := newestVersion()
	if err != nil {
		return err
	}
	version, err := versionOf(ctx, pool)
	if err != nil {
		return damage("read the schema's version", err)
	}
	var known bool
	err = pool.QueryRowContext(ctx, "select exists (select 1 from sqlite_schema where name = 'job')").Scan(&known)
	switch {
	case err != nil:
		return damage("read the schema", err)
	case !known:
		return fmt.Errorf("%w: it is not a database of this program", integrity.ErrDamaged)
	}
	return checkVersion(version, steps)
}
