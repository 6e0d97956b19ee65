package file_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"io"
	"slices"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/media/sniff"
)

type bucket struct{ stored map[string][]byte }

func (b *bucket) Arrival(_ context.Context, name string) (file.Arrival, error) {
	content, ok := b.stored[name]
	if !ok {
		return file.Arrival{}, fault.New(fault.NotFound, "no blob")
	}
	sum := md5.Sum(content)
	return file.Arrival{Size: int64(len(content)), MD5: hex.EncodeToString(sum[:])}, nil
}

func (b *bucket) Open(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	content := b.stored[name][offset:]
	return io.NopCloser(bytes.NewReader(content[:min(length, int64(len(content)))])), nil
}

func (w *world) announce(t *testing.T, account, content string) file.File {
	t.Helper()
	sum := md5.Sum([]byte(content))
	f, err := w.service.CreatePending(t.Context(), file.File{
		Account: account, Filename: "a", MIME: "application/x-mine", Size: int64(len(content)),
		MD5: hex.EncodeToString(sum[:]), Lifetime: time.Minute,
	}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const pdf = "%PDF-1.7 and more"

// See docs/contract/media.md#large-uploads.
func TestFileExistsOnceItsBytesArrive(t *testing.T) {
	for name, arrive := range map[string]func(w *world, f file.File) error{
		"notified once": func(w *world, f file.File) error { return w.service.Received(t.Context(), f.Blob) },
		"notified twice": func(w *world, f file.File) error {
			if err := w.service.Received(t.Context(), f.Blob); err != nil {
				return err
			}
			w.now = w.now.Add(time.Second)
			return w.service.Received(t.Context(), f.Blob)
		},
		"read before the notification": func(*world, file.File) error { return nil },
	} {
		w, b := newWorld(t), &bucket{stored: map[string][]byte{}}
		w.configure(func(c *file.Config) { c.Signed, c.Detect = b, sniff.Any })
		f := w.announce(t, "acme", pdf)
		if _, err := w.service.Get(t.Context(), "acme", f.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: before the bytes arrived: %v", name, err)
		}
		b.stored[f.Blob] = []byte(pdf)
		came := w.now.Add(time.Hour)
		w.now = came
		if _, err := w.service.Get(t.Context(), "rival", f.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: another account read it: %v", name, err)
		}
		if err := arrive(w, f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, err := w.service.Get(t.Context(), "acme", f.ID)
		if err != nil || got.MIME != "application/pdf" || !got.ExpiresAt.Equal(came.Add(time.Minute)) || got.Pending {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if files, _, err := w.service.List(t.Context(), "acme", "", 10); err != nil || len(files) != 1 {
			t.Errorf("%s: the list has %d files, %v", name, len(files), err)
		}
		if len(w.disk.deleted) > 0 {
			t.Errorf("%s: deleted %v", name, w.disk.deleted)
		}
	}
}

// outrun is a store in which another process finalizes a file while Get runs.
type outrun struct {
	file.Store
	finalize func()
}

func (o *outrun) Get(ctx context.Context, account, id string, now time.Time) (file.File, error) {
	f, err := o.Store.Get(ctx, account, id, now)
	if finalize := o.finalize; finalize != nil {
		o.finalize = nil
		finalize()
	}
	return f, err
}

func TestFileIsFoundWhileItIsFinalized(t *testing.T) {
	w, b := newWorld(t), &bucket{stored: map[string][]byte{}}
	store := &outrun{}
	w.configure(func(c *file.Config) {
		c.Signed, c.Detect = b, sniff.Any
		store.Store, c.Store = c.Store, store
	})
	f := w.announce(t, "acme", pdf)
	b.stored[f.Blob] = []byte(pdf)
	store.finalize = func() {
		if err := w.service.Received(t.Context(), f.Blob); err != nil {
			t.Error(err)
		}
	}
	if got, err := w.service.Get(t.Context(), "acme", f.ID); err != nil || got.Pending {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUnknownContentKeepsDeclaredType(t *testing.T) {
	w, b := newWorld(t), &bucket{stored: map[string][]byte{}}
	w.configure(func(c *file.Config) { c.Signed, c.Detect = b, sniff.Any })
	f := w.announce(t, "acme", "plain text")
	b.stored[f.Blob] = []byte("plain text")
	if got, err := w.service.Get(t.Context(), "acme", f.ID); err != nil || got.MIME != "application/x-mine" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBytesWithoutPendingFileAreDeleted(t *testing.T) {
	w, b := newWorld(t), &bucket{stored: map[string][]byte{}}
	w.configure(func(c *file.Config) { c.Signed, c.Detect = b, sniff.Any })
	deleted := w.announce(t, "acme", pdf)
	b.stored[deleted.Blob] = []byte(pdf)
	if err := w.service.Delete(t.Context(), "acme", deleted.ID); err != nil {
		t.Fatal(err)
	}
	w.disk.deleted = nil
	if err := w.service.Received(t.Context(), deleted.Blob); err != nil ||
		!slices.Equal(w.disk.deleted, []string{deleted.Blob}) {
		t.Errorf("bytes of a deleted file: %v, deleted %v", err, w.disk.deleted)
	}

	wrong := w.announce(t, "acme", pdf)
	b.stored[wrong.Blob] = []byte("%PDF-1.7 and less")
	w.disk.deleted = nil
	if err := w.service.Received(t.Context(), wrong.Blob); !fault.Is(err, fault.NotFound) ||
		!slices.Equal(w.disk.deleted, []string{wrong.Blob}) {
		t.Errorf("wrong bytes: %v, deleted %v", err, w.disk.deleted)
	}
	if _, err := w.service.Get(t.Context(), "acme", wrong.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("wrong bytes can be read: %v", err)
	}
	w.disk.deleted = nil
	for _, name := range []string{"files/file_1", "jobs/job_1/data", "files/.signed", "files/x/file_1.signed", ""} {
		if err := w.service.Received(t.Context(), name); err == nil || len(w.disk.deleted) > 0 {
			t.Errorf("%q, which was not announced: %v, deleted %v", name, err, w.disk.deleted)
		}
	}
}
