package diskblob_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"cutroom/shared/domain/fault"
)

func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestPutNeedsConstantMemory(t *testing.T) {
	store, _ := open(t)
	// The race detector makes pools drop some buffers, so the limit is generous.
	const size, bound = 64 << 20, 32 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := store.Put(t.Context(), "a", zeros(size)); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > bound {
		t.Errorf("allocated %d bytes for a blob of %d", allocated, size)
	}
}

func TestReaderKeepsItsBlobAfterReplacement(t *testing.T) {
	store, _ := open(t)
	put(t, store, "a", "old")
	r, err := store.Open(t.Context(), "a", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	put(t, store, "a", "newer")
	if got, err := io.ReadAll(r); err != nil || string(got) != "old" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestCopyUsesNoSpace(t *testing.T) {
	store, root := open(t)
	put(t, store, "a", "bytes")
	if err := store.Copy(t.Context(), "a", "b/c"); err != nil {
		t.Fatal(err)
	}
	from, err := os.Stat(filepath.Join(root, "a"))
	if err != nil {
		t.Fatal(err)
	}
	to, err := os.Stat(filepath.Join(root, "b", "c"))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(from, to) {
		t.Error("the bytes were copied")
	}
}

func TestOpenRemovesLeftoversOfCrash(t *testing.T) {
	store, root := open(t)
	put(t, store, "jobs/a/data", "kept")
	for _, path := range []string{"1", "2/data"} {
		path = filepath.Join(root, ".tmp", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("half"), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	store = openAt(t, root)
	if left := leftovers(t, root); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	r, err := store.Open(t.Context(), "jobs/a/data", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "kept" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestBlobsAreReadableOnlyByOwner(t *testing.T) {
	store, root := open(t)
	put(t, store, "jobs/a/data", "bytes")
	for _, path := range []string{"", ".tmp", "jobs", "jobs/a", "jobs/a/data"} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q has mode %v", path, info.Mode())
		}
	}
}

func TestNameOfExistingFolderIsRejected(t *testing.T) {
	store, root := open(t)
	put(t, store, "a/b", "bytes")
	put(t, store, "c", "bytes")
	for _, name := range []string{"a", "c/d"} {
		if _, err := store.Put(t.Context(), name, bytes.NewReader(nil)); fault.CodeOf(err) != fault.Internal {
			t.Errorf("Put of %q: error %v", name, err)
		}
	}
	if left := leftovers(t, root); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
