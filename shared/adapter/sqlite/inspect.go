package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"cutroom/shared/domain/integrity"
)

// Inspect examines a closed database without changing it. It checks the length of the files and, if the given time
// suffices, all pages.
//
// Errors: integrity.ErrNone, ErrLostMain, ErrDamaged; file system errors.
func Inspect(ctx context.Context, path string, within time.Duration) (integrity.Inspection, error) {
	if err := Present(path); err != nil {
		return integrity.Inspection{}, err
	}
	pool, err := openPool(path, url.Values{
		"mode": {"ro"}, "_busy_timeout": {strconv.FormatInt(busyTimeout.Milliseconds(), 10)}, "_query_only": {"on"},
	}, 1)
	if err != nil {
		return integrity.Inspection{}, err
	}
	defer pool.Close()
	var found integrity.Inspection
	if found.Mark, err = markOf(ctx, pool); err != nil {
		return integrity.Inspection{}, damage("read the mark", err)
	}
	if found.Bytes, err = checkLength(ctx, pool, path); err != nil {
		return integrity.Inspection{}, damage("check the length of the database", err)
	}
	if within <= 0 {
		return found, nil
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = checkPages(bounded, pool)
	if err == nil {
		err = checkReferences(bounded, pool)
	}
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return found, nil // some pages were not checked
	}
	found.Complete = err == nil
	return found, damage("check the database", err)
}

// Present returns an error if a database does not exist. It does not open the database.
//
// Errors: integrity.ErrNone, ErrLostMain.
func Present(path string) error {
	// Check the log first. SQLite creates the log only after the database's first page, so a log without a database
	// means that the database was lost.
	log, err := sizeOf(path + "-wal")
	if err != nil {
		return err
	}
	size, err := sizeOf(path)
	switch {
	case err != nil:
		return err
	case size == 0 && log > 0:
		return fmt.Errorf("%s-wal: %w", path, integrity.ErrLostMain)
	case size == 0:
		return integrity.ErrNone
	}
	return nil
}

func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("sqlite: %w", err)
	}
	return info.Size(), nil
}

func markOf(ctx context.Context, pool *sql.DB) (mark integrity.Mark, err error) {
	var known bool
	err = pool.QueryRowContext(ctx, "select exists (select 1 from sqlite_schema where name = 'mark')").Scan(&known)
	if err == nil && known {
		err = pool.QueryRowContext(ctx, readMark).Scan(&mark.Database, &mark.Writes)
	}
	return mark, err
}

// checkLength returns a database's size, or an error if the database's files are too short. SQLite itself checks this
// only without a log.
func checkLength(ctx context.Context, pool *sql.DB, path string) (bytes int64, err error) {
	var page, pages, free int64
	// A single statement sees a consistent state.
	err = pool.QueryRowContext(ctx, `select page_size, page_count, freelist_count
		from pragma_page_size, pragma_page_count, pragma_freelist_count`).Scan(&page, &pages, &free)
	if err != nil {
		return 0, err
	}
	size, err := sizeOf(path)
	if err != nil {
		return 0, err
	}
	log, err := sizeOf(path + "-wal")
	if err != nil {
		return 0, err
	}
	// frameHeader is the size of the header that each page has in the log. Free pages may be missing from the files,
	// because SQLite may never have written them.
	const frameHeader = 24
	if have := size/page + log/(page+frameHeader); have+free < pages {
		return 0, fmt.Errorf("%w: the files contain only %[3]d of %[2]d pages", integrity.ErrDamaged, pages, have)
	}
	return page * pages, nil
}

func checkPages(ctx context.Context, pool *sql.DB) error {
	var found string
	if err := pool.QueryRowContext(ctx, "pragma quick_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", integrity.ErrDamaged, found)
	}
	return nil
}

func checkReferences(ctx context.Context, pool *sql.DB) error {
	rows, err := pool.QueryContext(ctx, "pragma foreign_key_check")
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		var (
			table, parent string
			rowid, key    sql.NullInt64
		)
		if err := rows.Scan(&table, &rowid, &parent, &key); err != nil {
			return err
		}
		return fmt.Errorf("%w: a row of %s refers to a missing row of %s", integrity.ErrDamaged, table, parent)
	}
	return rows.Err()
}

func damage(what string, err error) error {
	if err == nil || errors.Is(err, integrity.ErrDamaged) {
		return err
	}
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
			return fmt.Errorf("%w: %w", integrity.ErrDamaged, err)
		}
		if e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ {
			return fmt.Errorf("%w: %w", integrity.ErrDamaged, err)
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: its mark is missing", integrity.ErrDamaged)
	}
	return storeError(what, err)
}
