package diskblob_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/integrity"
)

func TestSetAsideBlobCanBeRestoredUntilDropped(t *testing.T) {
	ctx := t.Context()
	root := t.TempDir()
	store := openAt(t, root)
	put(t, store, "files/a", "one")
	put(t, store, "jobs/j/data", "two")
	put(t, store, "jobs/j/deep/er", "three")
	put(t, store, "jobs/kept/data", "four")
	day := time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)
	for name, want := range map[string]int{"files/a": 1, "jobs/j": 2, "jobs/none": 0} {
		if n, err := store.SetAside(ctx, name, day); n != want || err != nil {
			t.Errorf("set %s aside: %d, %v; want %d", name, n, err, want)
		}
	}
	if _, err := store.Head(ctx, "files/a"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a blob that was set aside: %v", err)
	}
	// The same name is set aside again on the same day.
	put(t, store, "files/a", "five")
	if n, err := store.SetAside(ctx, "files/a", day); n != 1 || err != nil {
		t.Errorf("the same name again: %d, %v", n, err)
	}
	store = openAt(t, root)
	all, err := store.ListAside(ctx)
	var names []string
	for _, set := range all {
		names = append(names, set.Name)
		if !set.Day.Equal(day.Truncate(24 * time.Hour)) {
			t.Errorf("%s was set aside on %v", set.Name, set.Day)
		}
	}
	slices.Sort(names)
	if want := []string{"files/a", "files/a", "jobs/j/data", "jobs/j/deep/er"}; err != nil || !slices.Equal(names, want) {
		t.Fatalf("set aside: %v, %v; want %v", names, err, want)
	}
	for _, set := range all {
		if set.Name == "jobs/j/data" {
			if err := store.PutBack(ctx, set); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := store.Open(ctx, "jobs/j/data", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if content, err := io.ReadAll(r); err != nil || string(content) != "two" {
		t.Errorf("after putting back: %q, %v", content, err)
	}
	if n, err := store.DropAsideBefore(ctx, day.Add(time.Hour-time.Second)); n != 0 || err != nil {
		t.Errorf("before the end of their day %d blobs were dropped, %v", n, err)
	}
	if n, err := store.DropAsideBefore(ctx, day.Add(time.Hour)); n != 3 || err != nil {
		t.Errorf("after the end of their day %d blobs were dropped, %v; want 3", n, err)
	}
	if left, err := store.ListAside(ctx); err != nil || len(left) != 0 {
		t.Errorf("remaining: %v, %v", left, err)
	}
}

// Prefixes that contain a new blob are not set aside either.
func TestSetAsideSkipsNewBlobs(t *testing.T) {
	ctx := t.Context()
	store := openAt(t, t.TempDir())
	put(t, store, "files/old", "one")
	put(t, store, "jobs/old/data", "two")
	put(t, store, "jobs/both/old", "three")
	store.RememberNewcomers()
	put(t, store, "files/new", "four")
	put(t, store, "jobs/new/deep/er", "five")
	put(t, store, "jobs/both/new", "six")
	if err := store.Copy(ctx, "files/old", "files/copy"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"files/old": 1, "files/new": 0, "files/copy": 0, "jobs/old": 1, "jobs/new": 0, "jobs/both": 0,
	} {
		if n, err := store.SetAside(ctx, name, time.Now()); n != want || err != nil {
			t.Errorf("set %s aside: %d, %v; want %d", name, n, err, want)
		}
	}
	for _, name := range []string{"files/new", "files/copy", "jobs/new/deep/er", "jobs/both/old", "jobs/both/new"} {
		if _, err := store.Head(ctx, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	store.ForgetNewcomers()
	if n, err := store.SetAside(ctx, "jobs/both", time.Now()); n != 2 || err != nil {
		t.Errorf("forgotten: %d, %v", n, err)
	}
}

func TestMarkFollowsDatabase(t *testing.T) {
	root := t.TempDir()
	if mark, err := diskblob.ReadMark(root); err != nil || mark != (integrity.Mark{}) {
		t.Errorf("without a mark: %+v, %v", mark, err)
	}
	marker, err := openAt(t, root).Marker(integrity.Mark{Database: "one", Writes: 4})
	if err != nil {
		t.Fatal(err)
	}
	want := func(database string, writes int64) {
		t.Helper()
		if mark, err := diskblob.ReadMark(root); err != nil || mark != (integrity.Mark{Database: database, Writes: writes}) {
			t.Errorf("the mark is %+v, %v; want %s and %d", mark, err, database, writes)
		}
	}
	want("one", 4)
	marker.Advance(123456789)
	marker.Advance(5) // a delayed report is ignored
	want("one", 123456789)
	if err := marker.Close(); err != nil {
		t.Fatal(err)
	}
	marker.Advance(200000000)
	want("one", 123456789)
	// The root is used with another database, then with an earlier copy of the same one.
	for _, mark := range []integrity.Mark{{Database: "two", Writes: 9}, {Database: "two", Writes: 3}} {
		marker, err := openAt(t, root).Marker(mark)
		if err != nil {
			t.Fatal(err)
		}
		want(mark.Database, mark.Writes)
		if err := marker.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A folder may contain foreign files, such as copies that a person made.
func TestSetAsideKeepsForeignFiles(t *testing.T) {
	ctx := t.Context()
	root := t.TempDir()
	store := openAt(t, root)
	put(t, store, "files/a", "one")
	for _, path := range []string{"jobs/odd", "jobs/empty/deeper"} {
		if err := os.MkdirAll(filepath.Join(root, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "jobs/odd/a copy (1).mp4"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, link := range []struct{ to, name string }{{"a", "files/link"}, {"..", "files/folder"},
		{"nowhere", "files/dangling"}} {
		if err := os.Symlink(link.to, filepath.Join(root, link.name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "files/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for entry, err := range store.List(ctx, "files") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, entry.Name)
	}
	if !slices.Equal(names, []string{"files/a"}) {
		t.Errorf("listed: %v, want only files/a", names)
	}
	for name, want := range map[string]int{"jobs/odd": 1, "jobs/empty": 0} {
		if n, err := store.SetAside(ctx, name, time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)); n != want || err != nil {
			t.Errorf("set %s aside: %d, %v; want %d", name, n, err, want)
		}
	}
	if kept, err := os.ReadFile(filepath.Join(root,
		".unknown/2026-11-20/jobs/odd/a copy (1).mp4")); string(kept) != "two" {
		t.Errorf("a file with an invalid blob name: %q, %v", kept, err)
	}
}
