package sqlite

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"cutroom/shared/domain/fault"
)

func storeError(what string, err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	switch {
	case isFull(err):
		return fullError(err)
	case isBusy(err):
		busy := fault.Wrap(err, fault.Unavailable, "The database is busy. Try again.")
		busy.RetryAfter = time.Second
		return busy
	}
	return fmt.Errorf("sqlite: %s: %w", what, err)
}

// fullError is the error for a full disk. cause may be nil.
func fullError(cause error) *fault.Error {
	full := fault.Wrap(cause, fault.StorageFull, "The disk is full, so the record cannot be stored.")
	full.RetryAfter = time.Minute
	return full
}

// SQLite reports "full" only for ENOSPC. An exceeded quota, or a shared-memory file that cannot
// grow, causes a write error.
func isFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() {
	case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC,
		sqlite3.SQLITE_IOERR_TRUNCATE, sqlite3.SQLITE_IOERR_SHMSIZE:
		return true
	}
	return e.Code()&0xff == sqlite3.SQLITE_FULL
}

func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
