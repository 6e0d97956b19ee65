package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/integrity"
)

const (
	// checkLog is how much the log of writes may grow, in bytes, by a check: the log does
	// not begin anew as long as somebody reads an older state, and its file keeps its size.
	checkLog = 64 << 20
	// lookEvery is how often its size is looked at.
	lookEvery = 200 * time.Millisecond
	// checkAttempts is how often a table is tried, and checkPause the wait in between.
	checkAttempts = 5
	checkPause    = 20 * time.Second
)

// errBusy means that too much was written while a table was checked.
var errBusy = errors.New("sqlite: too much is written for a check")

// Check checks whether the tables of a database are intact, while it may be in use. It
// reads each by itself, on a connection of its own, and gives a table up while so much is
// written that the log would grow; skipped names those that it could not check for that. It
// ends with the first that is damaged, but goes on after one that cannot be read: others may
// be damaged.
//
// Errors: integrity.ErrDamaged; that of the context; others of the file system, joined.
func Check(ctx context.Context, path string) (skipped []string, err error) {
	pool, err := openPool(path, url.Values{
		"mode": {"ro"}, "_busy_timeout": {strconv.FormatInt(busyTimeout.Milliseconds(), 10)}, "_query_only": {"on"},
	}, 1)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	tables, err := tablesOf(ctx, pool)
	if err != nil {
		return nil, damage("list the tables", err)
	}
	log, err := sizeOf(path + "-wal")
	if err != nil {
		return nil, err
	}
	var unreadable []error
	for _, table := range tables {
		err := checkTable(ctx, pool, path, table, log+checkLog)
		switch {
		case ctx.Err() != nil:
			return skipped, errors.Join(append(unreadable, ctx.Err())...)
		case errors.Is(err, errBusy):
			skipped = append(skipped, table)
		case err != nil:
			err = fmt.Errorf("the table %s: %w", table, damage("check a table", err))
			if unreadable = append(unreadable, err); errors.Is(err, integrity.ErrDamaged) {
				return skipped, errors.Join(unreadable...)
			}
		}
	}
	return skipped, errors.Join(unreadable...)
}

// tablesOf returns the names of all tables.
func tablesOf(ctx context.Context, pool *sql.DB) (names []string, err error) {
	rows, err := pool.QueryContext(ctx, "select name from sqlite_schema where type = 'table' order by rootpage")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// checkTable checks the pages of a table and of its indexes, and its references, while the
// log has at most so many bytes.
//
// Errors: errBusy; those of checkPages.
func checkTable(ctx context.Context, pool *sql.DB, path, table string, most int64) error {
	checks := []func(context.Context, *sql.DB, string) error{checkPagesOf, checkReferencesOf}
	for _, check := range checks {
		for attempt := 1; ; attempt++ {
			err := whileQuiet(ctx, path+"-wal", most, func(ctx context.Context) error { return check(ctx, pool, table) })
			if !errors.Is(err, errBusy) || attempt == checkAttempts {
				if err != nil {
					return err
				}
				break
			}
			select {
			case <-time.After(checkPause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// whileQuiet reads, and gives up when the log grows beyond a number of bytes, or beyond what
// it has if that is more: another attempt is not to make it larger again.
//
// Errors: errBusy; those of read.
func whileQuiet(ctx context.Context, log string, most int64, read func(context.Context) error) error {
	before, err := sizeOf(log)
	if err != nil {
		return err
	}
	limit := max(before, most)
	reading, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	looking := make(chan struct{})
	go func() {
		defer close(looking)
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-reading.Done():
				return
			case <-ticker.C:
			}
			if size, err := sizeOf(log); err == nil && size > limit {
				giveUp(errBusy)
			}
		}
	}()
	err = read(reading)
	if err != nil && errors.Is(context.Cause(reading), errBusy) && ctx.Err() == nil {
		err = errBusy
	}
	giveUp(nil)
	<-looking
	return err
}

// checkPagesOf is checkPages for a table and its indexes. It does not see the list of free
// pages.
func checkPagesOf(ctx context.Context, pool *sql.DB, table string) error {
	return expectSound(pool.QueryRowContext(ctx, "pragma quick_check("+quoted(table)+")"))
}

// checkReferencesOf is checkReferences for the rows of a table.
func checkReferencesOf(ctx context.Context, pool *sql.DB, table string) error {
	return expectReferences(pool.QueryContext(ctx, "pragma foreign_key_check("+quoted(table)+")"))
}

// quoted is a name in a statement.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// expectSound reads the first line of SQLite's check.
func expectSound(row *sql.Row) error {
	var found string
	if err := row.Scan(&found); err != nil {
		return err
	}
	if found != sound {
		return fmt.Errorf("%w: %s", integrity.ErrDamaged, found)
	}
	return nil
}
