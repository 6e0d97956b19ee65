package file_test

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/testkit/sqlitetest"
)

// disk fails to delete the blobs listed in stuck.
type disk struct {
	stuck   map[string]bool
	deleted []string
}

func (d *disk) Delete(_ context.Context, name string) error {
	if d.stuck[name] {
		return errors.New("input/output error")
	}
	d.deleted = append(d.deleted, name)
	return nil
}

func (d *disk) Head(context.Context, string) (blob.Info, error) { return blob.Info{}, nil }

func (d *disk) SetAside(context.Context, string, time.Time) (int, error) { return 0, nil }

func (d *disk) Children(context.Context, string) iter.Seq2[blob.Entry, error] {
	return func(func(blob.Entry, error) bool) {}
}

// world is a service on a real database, with a settable clock.
type world struct {
	config  file.Config
	service *file.Service
	sweeper *file.Sweeper
	disk    *disk
	now     time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{disk: &disk{stuck: map[string]bool{}}, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return w.now }
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "cutroom.db"), sqlite.Options{Now: clock})
	w.config = file.Config{
		Store: db.Files(), Blobs: w.disk, IDs: file.NewIDs(clock, rand.Reader), Cursors: file.NewCursors([]byte("secret")),
		Now: clock,
	}
	w.service = file.NewService(w.config)
	w.sweeper = &file.Sweeper{Store: db.Files(), Blobs: w.disk, Now: clock, Logger: slog.New(slog.DiscardHandler)}
	return w
}

func (w *world) configure(change func(*file.Config)) {
	change(&w.config)
	w.service = file.NewService(w.config)
}

func (w *world) create(t *testing.T) file.File {
	t.Helper()
	name, err := w.service.NewBlob()
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.service.Create(t.Context(), file.File{
		Account: "acme", Filename: "a.png", MIME: "image/png", Size: 1, MD5: "0cc175b9c0f1b6a831c399e269772661", Blob: name,
		Lifetime: time.Minute,
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFailedDeleteCanBeRetried(t *testing.T) {
	w := newWorld(t)
	f := w.create(t)
	w.disk.stuck[f.Blob] = true
	if err := w.service.Delete(t.Context(), "acme", f.ID); err == nil || fault.Is(err, fault.NotFound) {
		t.Fatalf("a broken disk: got %v", err)
	}
	if _, err := w.service.Get(t.Context(), "acme", f.ID); err != nil {
		t.Errorf("after a failed delete: %v", err)
	}
	w.disk.stuck[f.Blob] = false
	if err := w.service.Delete(t.Context(), "acme", f.ID); err != nil {
		t.Errorf("the second delete: %v", err)
	}
	if err := w.service.Delete(t.Context(), "acme", f.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the third delete: %v, want not found", err)
	}
}

func TestSweepContinuesAfterFailedDelete(t *testing.T) {
	w := newWorld(t)
	first, second := w.create(t), w.create(t)
	w.disk.stuck[first.Blob] = true
	w.now = w.now.Add(time.Hour)
	if err := w.sweeper.Sweep(t.Context()); err == nil {
		t.Error("the sweep did not report the file that it could not delete")
	}
	if !slices.Equal(w.disk.deleted, []string{second.Blob, file.ThumbnailBlob(second.Blob)}) {
		t.Errorf("deleted %v, want only the blobs of %s", w.disk.deleted, second.Blob)
	}
	w.disk.stuck[first.Blob] = false
	if err := w.sweeper.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if !slices.Contains(w.disk.deleted, first.Blob) {
		t.Error("the next sweep did not delete the file either")
	}
}
