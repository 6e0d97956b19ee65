package sqlite

import (
	"context"
	"errors"
	"os"
	"time"

	"cutroom/shared/domain/integrity"
)

// endings are the suffixes of the files that form a database, the main one first.
var endings = []string{"", "-wal", "-shm"}

// SetAside renames the files of a database that is not open, and returns the new
// name of the main one, which may be missing.
func SetAside(path string, at time.Time) (kept string, err error) {
	kept = path + ".damaged-" + at.UTC().Format("20060102T150405Z")
	for _, ending := range endings {
		if err := os.Rename(path+ending, kept+ending); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return kept, nil
}

// Replace replaces a damaged database by a new one with what Salvage could read of
// it. It returns the name under which the damaged one is kept, and how much of each
// table was saved.
func Replace(ctx context.Context, path string, at time.Time) (kept string, tables []integrity.Salvaged, err error) {
	fresh := path + ".repair"
	for _, ending := range endings {
		if err := os.Remove(fresh + ending); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", nil, err
		}
	}
	if tables, err = Salvage(ctx, path, fresh); err != nil {
		return "", nil, err
	}
	if kept, err = SetAside(path, at); err != nil {
		return "", nil, err
	}
	return kept, tables, os.Rename(fresh, path)
}
