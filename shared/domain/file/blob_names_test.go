package file_test

import (
	"regexp"
	"strings"
	"testing"

	"cutroom/shared/domain/file"
	"cutroom/shared/domain/media/sniff"
)

// Blob names start with random digits if the store partitions by prefix. Old names remain valid.
func TestBlobNamesStartWithRandomDigits(t *testing.T) {
	w, b := newWorld(t), &bucket{stored: map[string][]byte{}}
	w.configure(func(c *file.Config) { c.Signed, c.Detect = b, sniff.Any })
	before := w.announce(t, "acme", pdf)
	if before.Blob != file.BlobOf(before.ID)+file.SignedSuffix {
		t.Errorf("the blob of %s is %s", before.ID, before.Blob)
	}

	w.configure(func(c *file.Config) { c.SpreadBlobs = true })
	name, err := w.service.NewBlob()
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile(`^files/(..)/file_[0-9A-Za-z]+(..)$`).FindStringSubmatch(name)
	if parts == nil || parts[1] != parts[2] {
		t.Errorf("the name of a new blob is %s", name)
	}
	if got, want := file.ThumbnailBlob(name), "thumbnails"+strings.TrimPrefix(name, "files"); got != want {
		t.Errorf("the name of its thumbnail is %s, want %s", got, want)
	}
	after := w.announce(t, "acme", pdf)
	if want := "files/" + after.ID[len(after.ID)-2:] + "/" + after.ID + file.SignedSuffix; after.Blob != want {
		t.Errorf("the blob of an announced file is %s, want %s", after.Blob, want)
	}

	for _, f := range []file.File{before, after} {
		b.stored[f.Blob] = []byte(pdf)
		if err := w.service.Received(t.Context(), f.Blob); err != nil {
			t.Errorf("the bytes arrived in %s: %v", f.Blob, err)
		}
		if got, err := w.service.Get(t.Context(), "acme", f.ID); err != nil || got.Blob != f.Blob {
			t.Errorf("the file is in %s, %v, want %s", got.Blob, err, f.Blob)
		}
	}
}
