package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/file"
)

var day = time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)

// newFile returns a file. Ids sort by number.
func newFile(number int, expiresAt time.Time) file.File {
	id := fmt.Sprintf("file_%027d", number)
	return file.File{
		ID: id, Account: "acme", Size: 1, MD5: fmt.Sprintf("%032x", number), Blob: "files/" + id,
		CreatedAt: day, ExpiresAt: expiresAt,
	}
}

// fillExpired creates files with the given range of numbers, which expire after an hour.
func fillExpired(t *testing.T, db *DB, first, last int) {
	t.Helper()
	if _, err := db.writer.ExecContext(t.Context(), `with recursive number (n) as
			(select ?1 union all select n + 1 from number where n < ?2)
		insert into file (id, account, key, filename, mime, size, md5, blob, state, created_at, expires_at, lifetime)
		select printf('file_%027d', n), 'acme', '', '', '', 1, printf('%032x', n), printf('files/file_%027d', n),
			'stored', ?3, ?4, 3600000 from number`, first, last, millis(day), millis(day.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
}

func TestListSkipsVeryManyExpiredFiles(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	for _, f := range []file.File{newFile(1, time.Time{}), newFile(4*walk, time.Time{})} {
		if err := db.Files().Create(t.Context(), f, 0); err != nil {
			t.Fatal(err)
		}
	}
	fillExpired(t, db, 2, 3*walk)

	var listed []string
	var reads, empty int
	for after := ""; ; reads++ {
		files, next, err := db.Files().List(t.Context(), "acme", after, 100, day.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			empty++
		}
		for _, f := range files {
			listed = append(listed, f.ID)
		}
		if next == "" {
			break
		}
		if reads > 10 {
			t.Fatalf("the list has not ended after %s", after)
		}
		after = next
	}
	want := newFile(4*walk, time.Time{}).ID + " " + newFile(1, time.Time{}).ID
	if got := strings.Join(listed, " "); got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
	if reads < 3 || empty == 0 {
		t.Errorf("%d reads, %d of them without a file; no read may scan all expired files", reads+1, empty)
	}
}

func TestSweepDeletesAllExpiredFilesInSmallSteps(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	fillExpired(t, db, 1, 2*endBatch+1)
	stored := func() (bytes int64) {
		if err := db.reader.QueryRowContext(t.Context(),
			"select bytes from storage where account = 'acme'").Scan(&bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	for _, c := range []struct {
		at          time.Duration
		given, left int
	}{{time.Hour - time.Millisecond, 0, 2*endBatch + 1}, {time.Hour, 10, 0}, {time.Hour, 10, 0}} {
		if files, err := db.Files().Ended(t.Context(), day.Add(c.at), 10); err != nil || len(files) != c.given {
			t.Fatalf("%d files, %v; want %d", len(files), err, c.given)
		}
		if got := stored(); got != int64(c.left) {
			t.Fatalf("%d bytes are counted, want %d", got, c.left)
		}
	}
}

func TestUploadDeletesEnoughExpiredFiles(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	fillExpired(t, db, 1, 3*endBatch)
	f := newFile(4*endBatch, time.Time{})
	f.Size, f.CreatedAt = 2*endBatch, day.Add(time.Hour)
	if err := db.Files().Create(t.Context(), f, 3*endBatch); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := db.reader.QueryRowContext(t.Context(),
		"select count(*) from file where state = 'stored'").Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != endBatch+1 {
		t.Errorf("%d files are stored, want %d", left, endBatch+1)
	}
}
