package file_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

func (w *world) onDisk(t *testing.T) *diskblob.Store {
	t.Helper()
	blobs, err := diskblob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.configure(func(c *file.Config) { c.Blobs = blobs })
	w.sweeper.Blobs = blobs
	return blobs
}

func (w *world) pictured(t *testing.T, blobs blob.Store) file.File {
	t.Helper()
	f := w.create(t)
	if _, err := blobs.Put(t.Context(), f.Blob, strings.NewReader("a picture")); err != nil {
		t.Fatal(err)
	}
	if err := file.StoreThumbnail(t.Context(), blobs, f.Blob, []byte("small")); err != nil {
		t.Fatal(err)
	}
	if picture, err := file.Thumbnail(t.Context(), blobs, f.Blob); err != nil || string(picture) != "small" {
		t.Fatalf("got %q, %v", picture, err)
	}
	return f
}

func TestDeletedFileGetsNoThumbnail(t *testing.T) {
	w := newWorld(t)
	blobs := w.onDisk(t)
	f := w.pictured(t, blobs)
	if err := w.service.Delete(t.Context(), "acme", f.ID); err != nil {
		t.Fatal(err)
	}
	if err := file.StoreThumbnail(t.Context(), blobs, f.Blob, []byte("small")); !fault.Is(err, fault.NotFound) {
		t.Errorf("StoreThumbnail returned %v, want not found", err)
	}
	if _, err := file.Thumbnail(t.Context(), blobs, f.Blob); !fault.Is(err, fault.NotFound) {
		t.Errorf("Thumbnail returned %v, want not found", err)
	}

	// The file is deleted while its thumbnail is being stored.
	f = w.pictured(t, blobs)
	late := &lateDeletion{blobs, func() error { return w.service.Delete(t.Context(), "acme", f.ID) }}
	if err := file.StoreThumbnail(t.Context(), late, f.Blob, []byte("small")); !fault.Is(err, fault.NotFound) {
		t.Errorf("StoreThumbnail returned %v, want not found", err)
	}
	if _, err := file.Thumbnail(t.Context(), blobs, f.Blob); !fault.Is(err, fault.NotFound) {
		t.Errorf("Thumbnail returned %v, want not found", err)
	}
}

type lateDeletion struct {
	blob.Store
	then func() error
}

func (l *lateDeletion) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	n, err := l.Store.Put(ctx, name, r)
	if err == nil {
		err = l.then()
	}
	return n, err
}

func TestEmptyThumbnailIsRemembered(t *testing.T) {
	w := newWorld(t)
	blobs := w.onDisk(t)
	f := w.pictured(t, blobs)
	if err := file.StoreThumbnail(t.Context(), blobs, f.Blob, nil); err != nil {
		t.Fatal(err)
	}
	if picture, err := file.Thumbnail(t.Context(), blobs, f.Blob); err != nil || len(picture) != 0 {
		t.Errorf("got %q, %v", picture, err)
	}
}

// The sweep deletes thumbnails of files that have lost their record or their bytes.
func TestSweepDeletesThumbnailsWithoutFile(t *testing.T) {
	w := newWorld(t)
	blobs := w.onDisk(t)
	f := w.pictured(t, blobs)
	if err := blobs.Delete(t.Context(), w.pictured(t, blobs).Blob); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"thumbnails/file_gone", "thumbnails/file_gone.signed"} {
		if _, err := blobs.Put(t.Context(), name, strings.NewReader("small")); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := w.sweeper.SweepUnknown(t.Context()); n != 0 || err != nil {
		t.Errorf("set aside %d blobs, %v, want none", n, err)
	}
	var left []string
	for entry, err := range blobs.Children(t.Context(), "thumbnails") {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, entry.Name)
	}
	if !slices.Equal(left, []string{file.ThumbnailBlob(f.Blob)}) {
		t.Errorf("remaining thumbnails: %v", left)
	}
}
