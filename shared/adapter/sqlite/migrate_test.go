package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// schemaOf returns the schema, and checks that the file is intact.
func schemaOf(t *testing.T, db *DB) []string {
	t.Helper()
	rows, err := db.reader.QueryContext(t.Context(),
		"select type, name, coalesce(sql, '') from sqlite_schema order by type, name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var schema []string
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			t.Fatal(err)
		}
		schema = append(schema, kind+" "+name+": "+text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	var check string
	if err := db.reader.QueryRowContext(t.Context(), "pragma integrity_check").Scan(&check); err != nil || check != "ok" {
		t.Fatalf("integrity check: %q, %v", check, err)
	}
	return schema
}

func openFile(t *testing.T, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestMigrationsAreNumberedFromBaseline(t *testing.T) {
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range steps {
		if want := fmt.Sprintf("migrations/%04d_", baseline+i); !strings.HasPrefix(step, want) {
			t.Errorf("step %d is %s, want %s…", i+1, step, want)
		}
	}
	db := openFile(t, filepath.Join(t.TempDir(), "new.db"))
	if got, err := versionOf(t.Context(), db.reader); err != nil || got != baseline+len(steps)-1 {
		t.Errorf("a new file has version %d, %v; want %d", got, err, baseline+len(steps)-1)
	}
}

func TestFailedMigrationKeepsOldVersion(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	before := schemaOf(t, db)
	// The schema already exists, so every step fails. Some steps fail halfway through.
	if _, err := db.writer.ExecContext(t.Context(), "pragma user_version = 0; drop table job_request"); err != nil {
		t.Fatal(err)
	}
	if err := db.migrate(t.Context()); err == nil {
		t.Fatal("migrate succeeded")
	}
	if version, err := versionOf(t.Context(), db.reader); err != nil || version != 0 {
		t.Errorf("version %d, %v; want 0", version, err)
	}
	if after := schemaOf(t, db); len(after) != len(before)-1 {
		t.Errorf("the schema has %d entries, want the %d from before", len(after), len(before)-1)
	}
}

func TestUnknownVersionsAreRejected(t *testing.T) {
	for version, want := range map[int]string{1000: "supports only versions up to", baseline - 1: "oldest supported version is 29 (release 0.1.0)"} {
		path := filepath.Join(t.TempDir(), "a.db")
		db := openFile(t, path)
		if _, err := db.writer.ExecContext(t.Context(), fmt.Sprintf("pragma user_version = %d", version)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), path, Options{Now: time.Now})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("version %d", version)) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want an error with version %d and %q", err, version, want)
		}
	}
}

func TestNewFileCanBeOpenedConcurrently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			db, err := Open(t.Context(), path, Options{Now: time.Now})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			if err := db.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	all.Wait()
}

// Durability depends on these settings.
func TestConnectionsHaveDurableSettings(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a name?with=%20 #signs.db"))
	for _, c := range []struct {
		pool                *sql.DB
		pragma, want, whose string
	}{
		{db.writer, "journal_mode", "wal", "writer"}, {db.writer, "synchronous", "2", "writer"},
		{db.writer, "foreign_keys", "1", "writer"}, {db.writer, "busy_timeout", "10000", "writer"},
		{db.writer, "query_only", "0", "writer"},
		{db.reader, "journal_mode", "wal", "reader"}, {db.reader, "busy_timeout", "10000", "reader"},
		{db.reader, "query_only", "1", "reader"},
	} {
		var got string
		if err := c.pool.QueryRowContext(t.Context(), "pragma "+c.pragma).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("%s of the %s is %s, want %s", c.pragma, c.whose, got, c.want)
		}
	}
}

// This test's write may be lost. Later durable writes must not be affected.
func TestPanicKeepsDurableSettings(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	func() {
		defer func() { _ = recover() }()
		_ = db.writeVolatile(t.Context(), "panic", func(ctx context.Context, tx *transaction) error {
			if _, err := tx.ExecContext(ctx, "update mark set writes = writes + 100"); err != nil {
				t.Error(err)
			}
			panic("a mistake")
		})
	}()
	var synchronous, writes int
	if err := db.writer.QueryRowContext(t.Context(), "pragma synchronous").Scan(&synchronous); err != nil || synchronous != 2 {
		t.Errorf("synchronous is %d, want 2: %v", synchronous, err)
	}
	err := db.writer.QueryRowContext(t.Context(), "update mark set writes = writes returning writes").Scan(&writes)
	if err != nil || writes >= 100 {
		t.Errorf("%d writes, %v; the undone write must not count", writes, err)
	}
}

// There may be many ended jobs, files and tokens, so queries must not scan all of them.
func TestQueriesUseTheirIndexes(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	oldest := reversed.Replace(jobPage)
	for query, indexes := range map[string][]string{
		openOfAccount:  {"job_open_by_account"},
		backlogOfLane:  {"job_open_by_lane", "job_open_by_account"},
		overdueJobs:    {"job_open_by_deadline"},
		messagesOfLane: {"COVERING INDEX goqite_queue_priority_created_idx"},
		leasesOfLane:   {"lease_by_queue"},
		runsOfLane:     {"job_completed_by_lane"},
		unfinishedRuns: {"PRIMARY KEY (id=?)"},
		ownOnLane:      {"job_open_by_lane (lane=? AND account=?)"},
		jobByID:        {"PRIMARY KEY (id=?)"},
		endedJobs:      {"PRIMARY KEY (id>?)"},
		keyByHash:      {"(hash=?)"},
		nextQueue:      {"goqite_queue_priority_created_idx", "lease_by_queue"},
		tokenByHash:    {"client_token USING PRIMARY KEY (hash=?)", "api_key USING PRIMARY KEY (hash=?)"},
		filePage:       {"COVERING INDEX file_stored (account=? AND id<?)", "INTEGER PRIMARY KEY (rowid=?)"},
		lastWalked:     {"COVERING INDEX file_stored (account=? AND id<?)"},
		jobPage:        {"COVERING INDEX job_by_account (account=? AND id<?)", "PRIMARY KEY (id=?)"},
		oldest:         {"COVERING INDEX job_by_account (account=? AND id>?)", "PRIMARY KEY (id=?)"},
		lastWalkedJob:  {"COVERING INDEX job_by_account (account=? AND id<?)"},
		fileByID:       {"(id=?)"},
		fileByMD5:      {"file_stored_by_md5 (account=? AND md5=?)"},
		pendingByID:    {"(id=?)"},
		deleteFile:     {"(id=?)"},
		endOfAll:       {"file_by_end (account=? AND ends_at<?)"},
		endOfAccount:   {"file_by_end (account=? AND ends_at<?)"},
		endedFiles:     {"file_ended"},
		dueWebhooks:    {"webhook_due (account>?)", "webhook_due (account=? AND due<?)"},
	} {
		plan := planOf(t, db.reader, query)
		for _, index := range indexes {
			if !strings.Contains(plan, index) {
				t.Errorf("%s:\n%swant %s", query, plan, index)
			}
		}
		scans := strings.Contains(plan, "SCAN job\n") || strings.Contains(plan, "SCAN file\n")
		if scans || query != nextQueue && query != dueWebhooks && strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s:\n%swant neither a scan of all jobs or files nor a sort", query, plan)
		}
	}
}

func planOf(t *testing.T, pool *sql.DB, query string) string {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), "explain query plan "+query, nil, nil, nil, nil, nil, nil, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(step + "\n")
	}
	return plan.String()
}
