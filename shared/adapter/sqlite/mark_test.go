package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
)

// Transactions that change nothing are not counted. A write is reported before the call that made it returns.
func TestMarkCountsWrites(t *testing.T) {
	ctx := t.Context()
	var reported int64
	path := filepath.Join(t.TempDir(), "a.db")
	open := func() *sqlite.DB {
		t.Helper()
		db, err := sqlite.Open(ctx, path, sqlite.Options{Now: time.Now, Committed: func(n int64) { reported = n }})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	first, err := db.Mark(ctx)
	if err != nil || first.Database == "" {
		t.Fatalf("got %+v, %v", first, err)
	}
	key := credential.Key{ID: "key_1", Account: "acme", Tier: "dev", CreatedAt: time.Now()}
	if err := db.Keys().CreateKey(ctx, audit.Operator(key.CreatedAt), key); err != nil {
		t.Fatal(err)
	}
	if after, err := db.Mark(ctx); err != nil || after.Writes != first.Writes+1 || reported != after.Writes {
		t.Errorf("after one write: %+v, reported %d, %v; at first: %+v", after, reported, err, first)
	}
	if err := db.Jobs().Forget(ctx, "job_none"); err != nil {
		t.Fatal(err)
	}
	if after, err := db.Mark(ctx); err != nil || after.Writes != first.Writes+1 {
		t.Errorf("after a write that changed nothing: %+v, %v", after, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open()
	defer db.Close()
	if again, err := db.Mark(ctx); err != nil || again.Database != first.Database || again.Writes != first.Writes+1 {
		t.Errorf("after opening again: %+v, %v", again, err)
	}
}
