package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/integrity"
)

// keyed returns a copy of an open database with many keys, including its write-ahead log.
func keyed(t *testing.T) (path string, mark integrity.Mark) {
	t.Helper()
	original := filepath.Join(t.TempDir(), "cutroom.db")
	db := openAt(t, original)
	for i := range 200 {
		key := credential.Key{ID: fmt.Sprint("key_", i), Account: "acme", Tier: "dev", Label: fmt.Sprintf("%0200d", i),
			CreatedAt: time.Now()}
		key.Hash[0], key.Hash[1] = byte(i), 1
		if err := db.Keys().CreateKey(t.Context(), audit.Operator(key.CreatedAt), key); err != nil {
			t.Fatal(err)
		}
	}
	mark, err := db.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "cutroom.db")
	for _, end := range []string{"", "-wal"} {
		content, err := os.ReadFile(original + end)
		if err == nil {
			err = os.WriteFile(path+end, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return path, mark
}

func TestInspectFindsDamage(t *testing.T) {
	inspect := func(path string) (integrity.Inspection, error) {
		return sqlite.Inspect(t.Context(), path, time.Minute)
	}
	path, mark := keyed(t)
	if found, err := inspect(path); err != nil || found.Mark != mark || !found.Complete {
		t.Errorf("an intact database: %+v, %v; its mark is %+v", found, err, mark)
	}
	t.Chdir(filepath.Dir(filepath.Dir(path)))
	relative := filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
	if found, err := inspect(relative); err != nil || found.Mark != mark || !found.Complete {
		t.Errorf("a relative path: %+v, %v; its mark is %+v", found, err, mark)
	}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Errorf("Inspect removed the log: %v", err)
	}
	if _, err := inspect(filepath.Join(t.TempDir(), "none.db")); !errors.Is(err, integrity.ErrNone) {
		t.Errorf("no database: %v", err)
	}

	for name, c := range map[string]struct {
		damage func(path string) error
		want   error
	}{
		"emptied next to its log": {func(path string) error { return os.Truncate(path, 0) }, integrity.ErrLostMain},
		"missing next to its log": {os.Remove, integrity.ErrLostMain},
		"emptied": {func(path string) error {
			return errors.Join(os.Remove(path+"-wal"), os.Truncate(path, 0))
		}, integrity.ErrNone},
		"no database": {func(path string) error {
			return errors.Join(os.Remove(path+"-wal"), os.WriteFile(path, make([]byte, 1<<20), 0o600))
		}, integrity.ErrDamaged},
		"truncated": {func(path string) error {
			db, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: time.Now})
			if err == nil {
				err = db.Close() // closing moves all data into one file
			}
			if err != nil {
				return err
			}
			return os.Truncate(path, 20<<10)
		}, integrity.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := keyed(t)
			if err := c.damage(path); err != nil {
				t.Fatal(err)
			}
			if found, err := inspect(path); !errors.Is(err, c.want) {
				t.Errorf("%+v, %v; want %v", found, err, c.want)
			}
		})
	}

	// The write-ahead log has the latest writes, so without the log the mark is older.
	path, mark = keyed(t)
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	if found, err := inspect(path); err == nil && found.Mark.Writes >= mark.Writes {
		t.Errorf("without its log the mark is %+v, and with it %+v", found.Mark, mark)
	}
}

// Truncated files are detected without reading the entire database. A database whose newest pages
// are only in the write-ahead log is not damaged.
func TestInspectChecksLength(t *testing.T) {
	path, mark := keyed(t)
	if found, err := sqlite.Inspect(t.Context(), path, 0); err != nil || found.Mark != mark || found.Complete || found.Bytes == 0 {
		t.Errorf("pages in the log: %+v, %v; the mark is %+v", found, err, mark)
	}
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: time.Now})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "cutroom.db")
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if log {
			// A killed process leaves a later write in the write-ahead log.
			killed := openAt(t, path)
			key := credential.Key{ID: "key_more", Account: "acme", Tier: "dev", Label: "more", CreatedAt: time.Now()}
			if err := killed.Keys().CreateKey(t.Context(), audit.Operator(key.CreatedAt), key); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := sqlite.Inspect(t.Context(), path, 0); err != nil {
			t.Errorf("a complete file, with a log: %t: %v", log, err)
		}
		if err := os.Truncate(path, int64(len(whole)/2)); err != nil {
			t.Fatal(err)
		}
		if found, err := sqlite.Inspect(t.Context(), path, 0); !errors.Is(err, integrity.ErrDamaged) {
			t.Errorf("half a file, with a log: %t: %+v, %v", log, found, err)
		}
	}
}

func TestSnapshotChecksReferences(t *testing.T) {
	path, _ := keyed(t)
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = raw.ExecContext(t.Context(), "pragma foreign_keys = off; insert into job_request (job, body) values ('none', '')")
	if err := errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Snapshot(t.Context(), path, filepath.Join(t.TempDir(), "copy")); !errors.Is(err, integrity.ErrDamaged) {
		t.Errorf("a snapshot was made: %v", err)
	}
}
