package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/integrity"
)

// keyed creates a database with many keys, and returns a copy of its files as they
// are while it is open: the database and its write-ahead log.
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

func TestInspect(t *testing.T) {
	inspect := func(path string) (integrity.Inspection, error) {
		return sqlite.Inspect(t.Context(), path, time.Minute)
	}
	path, mark := keyed(t)
	if found, err := inspect(path); err != nil || found.Mark != mark || !found.Whole {
		t.Errorf("a database in order: %+v, %v; its mark is %+v", found, err, mark)
	}
	t.Chdir(filepath.Dir(filepath.Dir(path)))
	relative := filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
	if found, err := inspect(relative); err != nil || found.Mark != mark || !found.Whole {
		t.Errorf("a database by its relative path: %+v, %v; its mark is %+v", found, err, mark)
	}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Errorf("the look at it took its log: %v", err)
	}
	if _, err := inspect(filepath.Join(t.TempDir(), "none.db")); !errors.Is(err, integrity.ErrNone) {
		t.Errorf("no database: %v", err)
	}

	for name, c := range map[string]struct {
		damage func(path string) error
		want   error
	}{
		"emptied beside its log": {func(path string) error { return os.Truncate(path, 0) }, integrity.ErrLostMain},
		"gone beside its log":    {os.Remove, integrity.ErrLostMain},
		"emptied": {func(path string) error {
			return errors.Join(os.Remove(path+"-wal"), os.Truncate(path, 0))
		}, integrity.ErrNone},
		"no database": {func(path string) error {
			return errors.Join(os.Remove(path+"-wal"), os.WriteFile(path, make([]byte, 1<<20), 0o600))
		}, integrity.ErrDamaged},
		"cut off": {func(path string) error {
			db, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: time.Now})
			if err == nil {
				err = db.Close() // everything is in one file
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

	// The log holds the latest writes: without it the mark is an earlier one.
	path, mark = keyed(t)
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	if found, err := inspect(path); err == nil && found.Mark.Writes >= mark.Writes {
		t.Errorf("without its log the mark is %+v, and with it %+v", found.Mark, mark)
	}
}

// What is found without reading all of a database: files that are too short, with and
// without the log, and no damage where the newest pages are in the log alone.
func TestInspectLength(t *testing.T) {
	path, mark := keyed(t)
	if found, err := sqlite.Inspect(t.Context(), path, 0); err != nil || found.Mark != mark || found.Whole || found.Bytes == 0 {
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
			// A write since, which is in the log of a process that was killed.
			killed := openAt(t, path)
			key := credential.Key{ID: "key_more", Account: "acme", Tier: "dev", Label: "more", CreatedAt: time.Now()}
			if err := killed.Keys().CreateKey(t.Context(), audit.Operator(key.CreatedAt), key); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := sqlite.Inspect(t.Context(), path, 0); err != nil {
			t.Errorf("a whole one, its log %t: %v", log, err)
		}
		if err := os.Truncate(path, int64(len(whole)/2)); err != nil {
			t.Fatal(err)
		}
		if found, err := sqlite.Inspect(t.Context(), path, 0); !errors.Is(err, integrity.ErrDamaged) {
			t.Errorf("half of one, its log %t: %+v, %v", log, found, err)
		}
	}
}

// Check sees what is wrong in any table while others write, and gives up only what would
// make the log grow.
func TestCheck(t *testing.T) {
	path, _ := keyed(t)
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if skipped, err := sqlite.Check(t.Context(), path); err != nil || len(skipped) > 0 {
		t.Errorf("a database in use: %v were skipped, %v", skipped, err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := sqlite.Check(stopped, path); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The last pages hold the keys, which were written last.
	copy(content[info.Size()-8192:], bytes.Repeat([]byte{0xa5}, 4096))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Inspect(t.Context(), path, 0); err != nil {
		t.Fatalf("it is seen without a check of the pages: %v", err)
	}
	if skipped, err := sqlite.Check(t.Context(), path); !errors.Is(err, integrity.ErrDamaged) {
		t.Errorf("damaged: %v were skipped, %v", skipped, err)
	}
}

// Each attempt at a table that is written to may let the log grow to the same size, however
// many there are: its file becomes no smaller.
func TestACheckLetsTheLogGrowOnce(t *testing.T) {
	const most = 1 << 20
	log := filepath.Join(t.TempDir(), "log")
	written := int64(0)
	for attempt := range 4 {
		err := sqlite.WhileQuiet(t.Context(), log, most, func(reading context.Context) error {
			written += most/2 + 1
			if err := errors.Join(os.WriteFile(log, nil, 0o600), os.Truncate(log, written)); err != nil {
				return err
			}
			if written <= most {
				return nil
			}
			<-reading.Done()
			return reading.Err()
		})
		if want := attempt > 0; errors.Is(err, sqlite.ErrBusy) != want || err != nil && !want {
			t.Errorf("attempt %d, the log has %d bytes: %v", attempt, written, err)
		}
	}
}

// A row that refers to one that is not there is damage too.
func TestCheckReferences(t *testing.T) {
	path, _ := keyed(t)
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = raw.ExecContext(t.Context(), "pragma foreign_keys = off; insert into job_request (job, body) values ('none', '')")
	if err := errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}
	if skipped, err := sqlite.Check(t.Context(), path); !errors.Is(err, integrity.ErrDamaged) {
		t.Errorf("%v were skipped, %v", skipped, err)
	}
}

// A table that cannot be read does not keep the check from finding what is damaged after it.
func TestCheckGoesOnAfterATableThatCannotBeRead(t *testing.T) {
	path, _ := keyed(t)
	change := func(statements string) {
		t.Helper()
		raw, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = raw.ExecContext(t.Context(), statements)
		if err := errors.Join(err, raw.Close()); err != nil {
			t.Fatal(err)
		}
	}
	// Its references cannot be checked, as what they refer to has no index.
	change("create table unreadable_one (a references job_request (body)); insert into unreadable_one values (1);" +
		"create table unreadable_two (a references job_request (body)); insert into unreadable_two values (1)")
	_, err := sqlite.Check(t.Context(), path)
	for _, name := range []string{"unreadable_one", "unreadable_two"} {
		if err == nil || errors.Is(err, integrity.ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("of %s it says %v", name, err)
		}
	}
	change("create table parent (a integer primary key); create table broken (a references parent (a)); insert into broken values (1)")
	if _, err := sqlite.Check(t.Context(), path); !errors.Is(err, integrity.ErrDamaged) ||
		!strings.Contains(err.Error(), "unreadable_one") {
		t.Errorf("with a damaged one after them: %v", err)
	}
}

// What a damaged database still holds is brought into a new one.
func TestSalvage(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "cutroom.db")
	db := openAt(t, path)
	for i := range 300 {
		key := credential.Key{ID: fmt.Sprintf("key_%03d", i), Account: "acme", Tier: "dev", Label: fmt.Sprintf("%0300d", i),
			CreatedAt: time.Now()}
		key.Hash[0], key.Hash[1] = byte(i), byte(i>>8)
		if err := db.Keys().CreateKey(ctx, audit.Operator(key.CreatedAt), key); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Jobs().Accept(ctx, newJob("job_a", "acme"), 0); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// The last pages hold the keys, which were written last.
	if err := os.Truncate(path, info.Size()-40<<10); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Inspect(ctx, path, time.Minute); !errors.Is(err, integrity.ErrDamaged) {
		t.Fatalf("the damage is not seen: %v", err)
	}
	into := filepath.Join(t.TempDir(), "new.db")
	kept, err := sqlite.Salvage(ctx, path, into)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]integrity.Salvaged{}
	for _, table := range kept {
		rows[table.Table] = table
	}
	if keys := rows["api_key"]; keys.Rows == 0 || keys.Rows >= 300 || keys.Whole {
		t.Errorf("of the keys %+v", keys)
	}
	if jobs := rows["job"]; jobs.Rows != 1 || !jobs.Whole {
		t.Errorf("of the jobs %+v", jobs)
	}
	if found, err := sqlite.Inspect(ctx, into, time.Minute); err != nil || !found.Whole {
		t.Errorf("the new database: %+v, %v", found, err)
	}
	made := openAt(t, into)
	keys, err := made.Keys().ListKeys(ctx, "acme")
	if err != nil || len(keys) != rows["api_key"].Rows {
		t.Errorf("it has %d keys, %v", len(keys), err)
	}
	receive(t, made, "job_a", time.Minute)
}
