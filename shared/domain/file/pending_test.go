package file_test

import (
	"context"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// overtaken calls a function before it extends a pending file. The function simulates another request.
type overtaken struct {
	file.Retention
	first func()
}

func (b overtaken) Extend(ctx context.Context, id string, until time.Time) error {
	b.first()
	return b.Retention.Extend(ctx, id, until)
}

// Another request may have completed or abandoned the same pending file.
func TestUploadReportsCompetingRequest(t *testing.T) {
	for says, c := range map[string]struct {
		other func(w *world, f file.File) error
		is    fault.Code
	}{
		"the other uploaded the bytes": {func(w *world, f file.File) error {
			_, err := w.service.Finalize(t.Context(), f, "")
			return err
		}, fault.Conflict},
		"the other found the storage full": {func(w *world, f file.File) error { return w.config.Store.Abandon(t.Context(), f.ID) },
			fault.NotFound},
		"the bytes were uploaded and deleted": {func(w *world, f file.File) error {
			if _, err := w.service.Finalize(t.Context(), f, ""); err != nil {
				return err
			}
			return w.service.Delete(t.Context(), f.Account, f.ID)
		}, fault.NotFound},
	} {
		w := newWorld(t)
		f, err := w.service.CreatePending(t.Context(), file.File{
			Account: "acme", Filename: "a.png", MIME: "image/png", Size: 1, MD5: "0cc175b9c0f1b6a831c399e269772661",
			Lifetime: time.Minute,
		}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		extender := overtaken{w.config.Store.(file.Retention), func() {
			if err := c.other(w, f); err != nil {
				t.Error(err)
			}
			c.other = func(*world, file.File) error { return nil }
		}}
		w.configure(func(config *file.Config) { config.Extender = extender })
		if _, err := w.service.PendingUpload(t.Context(), f.ID); !fault.Is(err, c.is) {
			t.Errorf("%s, at the start: %v, want %v", says, err, c.is)
		}
		if err := w.service.Extend(t.Context(), f); !fault.Is(err, c.is) {
			t.Errorf("%s, during the upload: %v, want %v", says, err, c.is)
		}
	}
}
