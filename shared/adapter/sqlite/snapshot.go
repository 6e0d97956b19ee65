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

// Snapshot writes a consistent copy of the database at path to a new file, and checks the copy. The database may be
// in use, and its writers are not blocked.
//
// Errors: integrity.ErrNone, ErrLostMain, ErrDamaged; a newer version's schema; file system errors.
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

const placeCheck = time.Minute

// Place creates a database at path from a snapshot.
//
// Errors: the reader's errors; integrity.ErrDamaged; an existing database; a newer version's
// schema; file system errors.
func Place(ctx context.Context, path string, snapshot io.Reader) error {
	if err := Present(path); !errors.Is(err, integrity.ErrNone) {
		return errors.Join(fmt.Errorf("sqlite: %s already exists", path), err)
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
		return fmt.Errorf("sqlite: create the database from the snapshot: %w", err)
	}
	return nil
}

// checkKnown rejects databases of other programs and of newer versions.
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
