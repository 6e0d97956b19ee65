package sqlite

import (
	"errors"
	"os"
	"time"
)

// SetAside renames the files of a closed database, any of which may be missing. It returns the new
// names, with the main file first.
func SetAside(path string, at time.Time) (kept []string, err error) {
	name := path + ".damaged-" + at.UTC().Format("20060102T150405Z")
	for _, ending := range []string{"", "-wal", "-shm"} {
		switch err := os.Rename(path+ending, name+ending); {
		case err == nil:
			kept = append(kept, name+ending)
		case !errors.Is(err, os.ErrNotExist):
			return kept, err
		}
	}
	return kept, nil
}
