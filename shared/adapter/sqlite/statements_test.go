package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// Statements keep working when writes fail and when another process changes the schema.
func TestPreparedStatementsSurviveFailures(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cutroom.db")
	files := openAt(t, path).Files()
	now := time.Now().Truncate(time.Millisecond).UTC()
	create := func(n int, limit int64) error {
		return files.Create(t.Context(), file.File{
			ID: fmt.Sprintf("file_%04d", n), Account: "me", Key: "key", Filename: "a", MIME: "video/mp4", Size: 10,
			MD5: fmt.Sprintf("%032d", n), Blob: fmt.Sprint("blob", n), CreatedAt: now, Lifetime: time.Hour,
		}, limit)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	want := 0
	for round := range 4 {
		for range 3 {
			want++
			if err := create(want, 0); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if err := create(9000, 10); !fault.Is(err, fault.Limited) {
			t.Errorf("round %d: beyond the limit: %v", round, err)
		}
		if err := create(1, 0); err == nil {
			t.Errorf("round %d: two files have the same id", round)
		}
		if _, err := other.ExecContext(t.Context(), fmt.Sprintf("create table other%d (x)", round)); err != nil {
			t.Fatal(err)
		}
	}
	page, _, err := files.List(t.Context(), "me", "", 100, now)
	if err != nil || len(page) != want {
		t.Errorf("got %d of %d files, %v", len(page), want, err)
	}
	if problems, err := sqlite.Inspect(t.Context(), path, time.Minute); err != nil || !problems.Complete {
		t.Errorf("the database: %v, %v", problems, err)
	}
}
