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

// SetAside renames the files of a database that is not open, any of which may be
// missing. It returns their new names, the main one first.
func SetAside(path string, at time.Time) (kept []string, err error) {
	name := path + ".damaged-" + at.UTC().Format("20060102T150405Z")
	for _, ending := range endings {
		switch err := os.Rename(path+ending, name+ending); {
		case err == nil:
			kept = append(kept, name+ending)
		case !errors.Is(err, os.ErrNotExist):
			return kept, err
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
	aside, err := SetAside(path, at)
	if err != nil {
		return "", nil, err
	}
	return aside[0], tables, os.Rename(fresh, path)
}
