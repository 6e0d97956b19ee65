package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"cutroom/shared/domain/integrity"
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
	part, err := os.OpenFile(path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	_, err = io.Copy(part, snapshot)
	if err = errors.Join(err, ctx.Err()); err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err == nil {
		var found integrity.Inspection
		found, err = Inspect(ctx, part.Name(), placeCheck)
		if err == nil && found.Mark.Database == "" {
			err = fmt.Errorf("%w: it is not a database of this program", integrity.ErrDamaged)
		}
	}
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}
