package sqlite

import (
	"context"
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
// into, which must not exist. The database may be in use; it is not changed, and its
// writers do not wait.
//
// Errors: integrity.ErrNone, ErrLostMain, ErrDamaged; others of the file system.
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
	_, err = pool.ExecContext(ctx, "vacuum into ?", into)
	return damage("copy the database", err)
}

// placeCheck bounds the check of a database that is placed.
const placeCheck = time.Minute

// Place writes what Snapshot has written to the path, where there is no database yet.
// The database is there whole or not at all.
//
// Errors: that of the reader; integrity.ErrDamaged; one that says so if there is a database; others of the
// file system.
func Place(ctx context.Context, path string, snapshot io.Reader) error {
	if err := Present(path); !errors.Is(err, integrity.ErrNone) {
		return errors.Join(fmt.Errorf("sqlite: %s is there already", path), err)
	}
	err := durable.Write(path, snapshot, func(part string) error {
		found, err := Inspect(ctx, part, placeCheck)
		if err == nil && found.Mark.Database == "" {
			err = fmt.Errorf("%w: it is not a database of this program", integrity.ErrDamaged)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlite: place the database: %w", err)
	}
	return nil
}
