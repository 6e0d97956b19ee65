package functions_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"io"
	"testing"

	"cutroom/shared/domain/fault"
)

func md5Of(content []byte) string {
	sum := md5.Sum(content)
	return hex.EncodeToString(sum[:])
}

func (w *world) store(t *testing.T, name string, content []byte) {
	t.Helper()
	if _, err := w.bucket.Put(t.Context(), name, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// stored returns the content of a blob, or nil if it does not exist.
func (w *world) stored(t *testing.T, name string) []byte {
	t.Helper()
	r, err := w.bucket.Open(t.Context(), name, 0, -1)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	must(t, err)
	defer r.Close()
	content, err := io.ReadAll(r)
	must(t, err)
	return content
}
