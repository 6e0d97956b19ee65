package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"cutroom/shared/domain/integrity"
)

// derived are tables that triggers fill, or that mean nothing in another file.
const derived = "'storage', 'mark'"

// Salvage copies what can be read of a damaged database into a new one at the path
// into, which must not exist, and returns what it copied of each table. Rows that
// refer to lost ones are left out. It stops only at an error of the new database. The
// damaged file is not changed.
func Salvage(ctx context.Context, damaged, into string) ([]integrity.Salvaged, error) {
	made, err := Open(ctx, into, Options{Now: time.Now})
	if err != nil {
		return nil, err
	}
	defer made.Close()
	// With a writable schema, SQLite reads what is left of a file that was cut off.
	old, err := openPool(damaged, url.Values{"mode": {"ro"}, "_query_only": {"on"}, "_pragma": {"writable_schema(1)"}}, 1)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	conn, err := made.writer.Conn(ctx)
	if err != nil {
		return nil, storeError("salvage", err)
	}
	defer conn.Close()
	// Parents may be copied after their children.
	if _, err := conn.ExecContext(ctx, "pragma foreign_keys = off"); err != nil {
		return nil, storeError("salvage", err)
	}
	tables, err := texts(ctx, conn, "select name from sqlite_schema where type = 'table' and name not in ("+derived+
		") and name not like 'sqlite_%' order by name")
	if err != nil {
		return nil, storeError("salvage", err)
	}
	var all []integrity.Salvaged
	for _, table := range tables {
		kept, err := salvageTable(ctx, old, conn, table)
		if err != nil {
			return all, storeError("salvage "+table, err)
		}
		all = append(all, kept)
	}
	return all, storeError("salvage", errors.Join(dropOrphans(ctx, conn), conn.Close()))
}

// salvageTable copies the rows of one table: from its start, and if that breaks
// off, from its end as far as possible.
func salvageTable(ctx context.Context, old *sql.DB, into *sql.Conn, table string) (integrity.Salvaged, error) {
	kept := integrity.Salvaged{Table: table}
	columns, err := texts(ctx, into, "select name from pragma_table_xinfo('"+table+"') where hidden = 0")
	if err != nil {
		return kept, err
	}
	// A column that the damaged file does not have yet keeps its default.
	theirs, err := texts(ctx, old, "select name from pragma_table_xinfo('"+table+"')")
	if err != nil || len(theirs) == 0 {
		return kept, nil //nolint:nilerr // nothing of it can be read
	}
	var common []string
	for _, column := range columns {
		for _, have := range theirs {
			if have == column {
				common = append(common, `"`+column+`"`)
			}
		}
	}
	key, err := texts(ctx, into, "select name from pragma_table_xinfo('"+table+"') where pk > 0 order by pk")
	if err != nil {
		return kept, err
	}
	order := "rowid"
	if len(key) > 0 {
		order = `"` + strings.Join(key, `", "`) + `"`
	}
	list := strings.Join(common, ", ")
	insert := fmt.Sprintf("insert or ignore into %s (%s) values (?%s)", table, list, strings.Repeat(", ?", len(common)-1))
	descending := strings.ReplaceAll(order, ",", " desc,") + " desc"
	for _, direction := range []string{" order by " + order, " order by " + descending} {
		broken, err := copyRows(ctx, old, into, "select "+list+" from "+table+direction, insert, len(common), &kept.Rows)
		if err != nil {
			return kept, err
		}
		if !broken {
			kept.Whole = true
			break
		}
	}
	return kept, nil
}

// copyRows copies the rows of a query until reading fails.
func copyRows(ctx context.Context, old *sql.DB, into *sql.Conn, query, insert string, columns int,
	copied *int) (broken bool, err error) {
	rows, err := old.QueryContext(ctx, query)
	if err != nil {
		return true, ctx.Err()
	}
	defer rows.Close()
	return broken, transact(ctx, into, func(ctx context.Context, tx *sql.Tx) error {
		statement, err := tx.PrepareContext(ctx, insert)
		if err != nil {
			return err
		}
		defer statement.Close()
		for rows.Next() {
			values, places := make([]any, columns), make([]any, columns)
			for i := range values {
				places[i] = &values[i]
			}
			if rows.Scan(places...) != nil {
				continue
			}
			// A row that the schema refuses counts as unreadable.
			done, err := statement.ExecContext(ctx, values...)
			if err != nil {
				if isFull(err) || ctx.Err() != nil {
					return err
				}
				continue
			}
			if n, err := done.RowsAffected(); err == nil {
				*copied += int(n)
			}
		}
		broken = rows.Err() != nil
		return ctx.Err()
	})
}

// dropOrphans deletes rows whose counterpart was lost.
func dropOrphans(ctx context.Context, conn *sql.Conn) error {
	return transact(ctx, conn, func(ctx context.Context, tx *sql.Tx) error {
		for _, statement := range []string{
			"delete from job_request where job not in (select id from job)",
			"delete from job where id not in (select job from job_request)",
			"delete from goqite where cast(body as text) not in (select id from job)",
			"delete from lease", // of a process that is gone
			"delete from webhook where job not in (select id from job)",
			"delete from webhook_attempt where id not in (select id from webhook)",
			"delete from session_slot where epoch not in (select epoch from session_lease)",
			"delete from session_ticket where epoch not in (select epoch from session_lease)",
		} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		// A job whose message was lost would wait for ever.
		_, err := tx.ExecContext(ctx, `insert into goqite (id, queue, body)
			select message, lane || '/' || account, cast(id as blob) from job
			where completed_at is null and message not in (select id from goqite)`)
		return err
	})
}

// texts returns the values of a query's only column.
func texts(ctx context.Context, q interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, query string) ([]string, error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}
