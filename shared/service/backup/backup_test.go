package backup_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/domain/blob"
	"cutroom/shared/service/backup"
)

type world struct {
	*testing.T
	source, kept *diskblob.Store
	folder       string
	records      string
	now          time.Time
	reread       bool
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, folder: t.TempDir(), now: time.Now(), records: "records 1"}
	w.source, w.kept = open(t, t.TempDir()), open(t, w.folder)
	return w
}

func open(t *testing.T, root string) *diskblob.Store {
	t.Helper()
	store, err := diskblob.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (w *world) put(name, content string) {
	w.Helper()
	if _, err := w.source.Put(w.Context(), name, strings.NewReader(content)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) save(store backup.Store) (backup.Report, error) {
	w.Helper()
	secret := filepath.Join(w.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("the secret"), 0o600); err != nil {
		w.Fatal(err)
	}
	return backup.Saver{
		Source: backup.Source{
			Snapshot: func(_ context.Context, path string) error {
				return os.WriteFile(path, []byte(w.records), 0o600)
			},
			Blobs:    w.source,
			Settings: map[string]string{"secret": secret, "other": secret + ".none"},
		},
		Store: store, Work: w.TempDir(), Version: "1.0", Now: func() time.Time { return w.now }, NewID: rand.Text,
		Reread: w.reread,
	}.Save(w.Context())
}

func (w *world) restored(store backup.Opener) (map[string]string, error) {
	w.Helper()
	m, err := backup.Read(w.Context(), store)
	if err != nil {
		return nil, err
	}
	if err := backup.Verify(w.Context(), store, m); err != nil {
		return nil, err
	}
	found := map[string]string{}
	keep := func(name string, content io.Reader) error {
		text, err := io.ReadAll(content)
		found[name] = string(text)
		return err
	}
	into := open(w.T, w.TempDir())
	_, err = backup.Restore(w.Context(), store, m, backup.Target{
		Blobs:   into,
		Setting: func(_ context.Context, name string, content io.Reader) error { return keep(name, content) },
		Records: func(_ context.Context, content io.Reader) error { return keep("records", content) },
	})
	maps.Copy(found, w.contents(into))
	return found, err
}

func (w *world) contents(store *diskblob.Store) map[string]string {
	w.Helper()
	found := map[string]string{}
	for entry, err := range store.List(w.Context(), "") {
		if err != nil {
			w.Fatal(err)
		}
		r, err := store.Open(w.Context(), entry.Name, 0, -1)
		if err != nil {
			w.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			w.Fatal(err)
		}
		found[entry.Name] = string(text)
	}
	return found
}

func (w *world) want(store backup.Opener, blobs map[string]string, records string) {
	w.Helper()
	found, err := w.restored(store)
	want := maps.Clone(blobs)
	want["records"], want["secret"] = records, "the secret"
	if err != nil || !maps.Equal(found, want) {
		w.Errorf("restored %v, %v; want %v", found, err, want)
	}
}

func TestBackupCanBeRestored(t *testing.T) {
	w := newWorld(t)
	if _, err := backup.Read(t.Context(), w.kept); !errors.Is(err, backup.ErrNone) {
		t.Errorf("before the first backup: %v", err)
	}
	w.put("files/a", "one")
	w.put("jobs/j/data", "two")
	w.put("jobs/j/same", "two")
	w.put("files/empty", "")
	report, err := w.save(w.kept)
	// Two blobs have the same content. The secret counts as a blob, too.
	if err != nil || report.Blobs != 4 || report.Bytes != 9 || report.NewBlobs != 4 {
		t.Errorf("the first backup is %+v, %v", report, err)
	}
	w.want(w.kept, w.contents(w.source), "records 1")

	w.put("files/a", "one, replaced")
	w.put("files/b", "three")
	if err := w.source.Delete(t.Context(), "jobs/j/data"); err != nil {
		t.Fatal(err)
	}
	w.records = "records 2"
	report, err = w.save(w.kept)
	if err != nil || report.Blobs != 4 || report.NewBlobs != 2 {
		t.Errorf("the second backup is %+v, %v", report, err)
	}
	w.want(w.kept, w.contents(w.source), "records 2")
	before := len(w.contents(w.kept))
	w.now = w.now.Add(25 * time.Hour)
	report, err = w.save(w.kept)
	if after := len(w.contents(w.kept)); err != nil || report.NewBlobs != 0 || before-after != 1 {
		t.Errorf("a day later: %+v, %v; %d contents, %d remain", report, err, before, after)
	}
	w.want(w.kept, w.contents(w.source), "records 2")
}

// A backup might otherwise delete the files that are already there.
func TestStoreWithOtherDataIsRejected(t *testing.T) {
	w := newWorld(t)
	w.put("files/a", "one")
	if _, err := w.kept.Put(t.Context(), "content/of/mine", strings.NewReader("mine")); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(48 * time.Hour)
	if _, err := w.save(w.kept); err == nil || !strings.Contains(err.Error(), "content/of/mine") {
		t.Errorf("the store was used: %v", err)
	}
	if left := w.contents(w.kept); len(left) != 1 {
		t.Errorf("remaining: %v", left)
	}
}

type cutOff struct {
	backup.Store
	left int
}

var errCutOff = errors.New("the disk was disconnected")

func (c *cutOff) write() error {
	if c.left--; c.left < 0 {
		return errCutOff
	}
	return nil
}

func (c *cutOff) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if err := c.write(); err != nil {
		return 0, err
	}
	return c.Store.Put(ctx, name, r)
}

func (c *cutOff) Delete(ctx context.Context, name string) error {
	if err := c.write(); err != nil {
		return err
	}
	return c.Store.Delete(ctx, name)
}

// The store contains either the previous backup or the new one, complete. The next backup continues.
func TestInterruptedBackupKeepsThePrevious(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.put(fmt.Sprint("files/", i), fmt.Sprint("content ", i))
	}
	if _, err := w.save(w.kept); err != nil {
		t.Fatal(err)
	}
	was, records := w.contents(w.source), w.records
	w.put("files/0", "replaced")
	w.put("files/new", "new")
	w.records = "records 2"
	broken := 0
	for n := 0; ; n++ {
		_, err := w.save(&cutOff{w.kept, n})
		if err == nil {
			break
		}
		if !errors.Is(err, errCutOff) {
			t.Fatalf("after %d writes: %v", n, err)
		}
		broken++
		found, err := w.restored(w.kept)
		if err != nil {
			t.Fatalf("after %d writes: %v", n, err)
		}
		if found["records"] == records {
			w.want(w.kept, was, records)
		} else {
			w.want(w.kept, w.contents(w.source), w.records)
		}
	}
	if broken < 5 {
		t.Errorf("it was interrupted at %d places", broken)
	}
	w.want(w.kept, w.contents(w.source), w.records)
}

type changing struct {
	*diskblob.Store
	change func(opened int, name string)
	opened int
}

func (c *changing) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	c.opened++
	c.change(c.opened, name)
	return c.Store.Open(ctx, name, offset, length)
}

// Each change is either complete in the backup or missing from it.
func TestBackupSurvivesChanges(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.put(fmt.Sprint("files/", i), fmt.Sprint("content ", i))
	}
	source := &changing{Store: w.source, change: func(opened int, name string) {
		switch opened {
		case 2: // between the first blob's two reads
			w.put(name, "replaced")
		case 4:
			if err := w.source.Delete(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
	}}
	saver := backup.Saver{
		Source: backup.Source{Blobs: source, Snapshot: func(_ context.Context, path string) error {
			w.put("files/late", "between the blobs and the records")
			return os.WriteFile(path, []byte("records 1"), 0o600)
		}},
		Store: w.kept, Work: t.TempDir(), Version: "1.0", Now: time.Now, NewID: rand.Text,
	}
	if _, err := saver.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := w.restored(w.kept)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range w.contents(w.source) {
		if found[name] != content {
			t.Errorf("%s is restored as %q, not %q", name, found[name], content)
		}
	}
	for _, name := range []string{"files/late"} {
		if found[name] == "" {
			t.Errorf("%s, which the records name, is missing", name)
		}
	}
}

func TestDamageIsDetected(t *testing.T) {
	w := newWorld(t)
	w.put("files/a", "one")
	w.put("files/b", "two")
	if _, err := w.save(w.kept); err != nil {
		t.Fatal(err)
	}
	whole := w.contents(w.kept)
	damaged := 0
	for name, content := range whole {
		if name == "cutroom-backup" {
			continue
		}
		for how, bad := range map[string]string{
			"cut off": content[:max(len(content)-2, 0)], "longer": content + "x", "other": strings.ToUpper(content) + "!",
		} {
			if name == "manifest.json" && how == "longer" {
				bad = content + "{"
			}
			if _, err := w.kept.Put(t.Context(), name, strings.NewReader(bad)); err != nil {
				t.Fatal(err)
			}
			if _, err := w.restored(w.kept); !errors.Is(err, backup.ErrDamaged) && name != "manifest.json" || err == nil {
				t.Errorf("%s, %s: %v", name, how, err)
			}
			damaged++
		}
		if err := w.kept.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if _, err := w.restored(w.kept); err == nil {
			t.Errorf("the check does not detect that %s is missing", name)
		}
		if strings.HasPrefix(name, "content/") {
			if _, err := w.save(w.kept); err != nil {
				t.Fatal(err)
			}
			w.want(w.kept, w.contents(w.source), "records 1")
			for place, kept := range whole {
				if _, err := w.kept.Put(t.Context(), place, strings.NewReader(kept)); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		if _, err := w.kept.Put(t.Context(), name, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	if damaged < 15 {
		t.Errorf("%d ways of damage were tried", damaged)
	}
	for _, lie := range [][2]string{
		{`"format": 1`, `"format": 2`}, {`"id": "`, `"id": "../../`}, {`"sha256": "`, `"sha256": "../`},
		{`"size": `, `"size": -`}, {`"blobs": `, `"blobs": -`}, {`"bytes": `, `"bytes": -`},
	} {
		text := strings.Replace(whole["manifest.json"], lie[0], lie[1], 1)
		if _, err := w.kept.Put(t.Context(), "manifest.json", bytes.NewReader([]byte(text))); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Read(t.Context(), w.kept); err == nil {
			t.Errorf("a manifest with %s is accepted", lie[1])
		}
	}
	if _, err := w.save(w.kept); err != nil {
		t.Fatal(err)
	}
	for name, content := range w.contents(w.kept) {
		if strings.HasPrefix(name, "content/") {
			if _, err := w.kept.Put(t.Context(), name, strings.NewReader(strings.ToUpper(content))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.save(w.kept); err != nil {
		t.Fatal(err)
	}
	if _, err := w.restored(w.kept); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("comparing sizes detects the damage: %v", err)
	}
	w.reread = true
	if report, err := w.save(w.kept); err != nil || report.Damaged != 3 {
		t.Errorf("read again: %+v, %v", report, err)
	}
	w.want(w.kept, w.contents(w.source), "records 1")
	if _, err := w.save(w.kept); err != nil {
		t.Fatal(err)
	}
	w.want(w.kept, w.contents(w.source), "records 1")
}

var _ backup.Store = (*diskblob.Store)(nil)
var _ blob.Store = backup.Store(nil)
