package sqlite_test

import (
	"bytes"
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

// The copy contains everything that was written before the snapshot started.
func TestSnapshotIsConsistent(t *testing.T) {
	ctx := t.Context()
	folder := t.TempDir()
	path := filepath.Join(folder, "cutroom.db")
	if err := sqlite.Snapshot(ctx, path, filepath.Join(folder, "none")); !errors.Is(err, integrity.ErrNone) {
		t.Errorf("without a database: %v", err)
	}
	db, err := sqlite.Open(ctx, path, sqlite.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	written := make(chan int)
	stop := make(chan struct{})
	go func() {
		defer close(written)
		for i := 0; ; i++ {
			key, err := credential.NewKey(fmt.Sprintf("ck_%012d", i), "acme", "default", "", time.Now())
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Keys().CreateKey(ctx, audit.Operator(key.CreatedAt), key); err != nil {
				t.Error(err)
				return
			}
			select {
			case written <- i + 1:
			case <-stop:
				return
			}
		}
	}()
	for n := range 5 {
		before := 0
		for range 20 {
			before = <-written
		}
		into := filepath.Join(folder, fmt.Sprint("copy", n))
		if err := sqlite.Snapshot(ctx, path, into); err != nil {
			t.Fatal(err)
		}
		if found, err := sqlite.Inspect(ctx, into, time.Minute); err != nil || !found.Complete {
			t.Errorf("the copy is %+v, %v", found, err)
		}
		copied, err := sqlite.Open(ctx, into, sqlite.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := copied.Keys().ListKeys(ctx, "acme")
		if err := errors.Join(err, copied.Close()); err != nil {
			t.Fatal(err)
		}
		if len(keys) < before {
			t.Errorf("the copy has %d keys, fewer than the %d before it started", len(keys), before)
		}
		if err := sqlite.Snapshot(ctx, path, into); err == nil {
			t.Error("a copy replaced a file")
		}
	}
	close(stop)
	for range written {
	}
}

func TestPlaceRejectsForeignFiles(t *testing.T) {
	ctx := t.Context()
	folder := t.TempDir()
	path := filepath.Join(folder, "cutroom.db")
	foreign := filepath.Join(folder, "foreign.db")
	pool, err := sql.Open("sqlite", foreign)
	if err == nil {
		_, err = pool.ExecContext(ctx, "create table mine (name text)")
	}
	if err := errors.Join(err, pool.Close()); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(foreign)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"nothing": nil, "garbage": []byte(strings.Repeat("garbage ", 500)), "another program's": other,
		"truncated": other[:len(other)/2],
	} {
		if err := sqlite.Place(ctx, path, bytes.NewReader(content)); err == nil {
			t.Errorf("%s was placed", name)
		}
	}
	left, err := filepath.Glob(path + "*")
	if err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v, %v", left, err)
	}
}
