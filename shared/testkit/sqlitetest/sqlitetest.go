// Package sqlitetest opens new databases for tests of code above the SQLite adapter.
package sqlitetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
)

// blank is the content of a newly created database. It is cached because writing the schema takes
// longer than most tests.
var blank = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "sqlitetest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "cutroom.db")
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{Now: time.Now})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		return nil, errors.New("sqlitetest: the write-ahead log still exists")
	}
	return os.ReadFile(path)
})

// Open opens a new database at the path. It is closed when the test ends.
func Open(t testing.TB, path string, options sqlite.Options) *sqlite.DB {
	t.Helper()
	content, err := blank()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
