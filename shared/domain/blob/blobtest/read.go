package blobtest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

var openTests = []test{
	{"reads any range", func(s *suite) {
		content := data(1, 1000)
		s.put("a", content)
		for _, c := range []struct{ offset, length, from, to int64 }{
			{0, -1, 0, 1000}, {0, 1000, 0, 1000}, {0, 1, 0, 1}, {0, 0, 0, 0},
			{1, -1, 1, 1000}, {1, 2, 1, 3}, {999, 1, 999, 1000}, {999, -1, 999, 1000}, {500, 0, 500, 500},
			{0, 999, 0, 999}, {1, 998, 1, 999}, {0, 1001, 0, 1000}, {900, 500, 900, 1000}, {1, 1 << 62, 1, 1000},
			{1000, -1, 1000, 1000}, {1000, 5, 1000, 1000}, {5000, -1, 1000, 1000}, {5000, 5, 1000, 1000},
		} {
			if got := s.read("a", c.offset, c.length); !bytes.Equal(got, content[c.from:c.to]) {
				s.Errorf("%d bytes from %d: got %d bytes that differ from those from %d to %d", c.length, c.offset, len(got), c.from, c.to)
			}
		}
	}},
	{"reads an empty blob", func(s *suite) {
		s.put("a", nil)
		for _, length := range []int64{-1, 0, 1} {
			if got := s.read("a", 0, length); len(got) != 0 {
				s.Errorf("read %d bytes", len(got))
			}
		}
	}},
	{"returns readers that can be copied from", func(s *suite) {
		content := data(1, 300<<10)
		s.put("a", content)
		for _, length := range []int64{-1, 100 << 10} {
			r, err := s.Store.Open(s.ctx, "a", 1000, length)
			conformance.OK(s, err)
			var got bytes.Buffer
			_, err = io.CopyN(&got, r, 10)
			conformance.OK(s, err)
			_, err = io.Copy(&got, r)
			conformance.OK(s, err)
			conformance.OK(s, r.Close())
			want := content[1000:]
			if length >= 0 {
				want = want[:length]
			}
			if !bytes.Equal(got.Bytes(), want) {
				s.Errorf("copied %d bytes that differ from the %d bytes of the range", got.Len(), len(want))
			}
		}
	}},
	{"returns independent readers", func(s *suite) {
		s.put("a", data(1, 1000))
		first, err := s.Store.Open(s.ctx, "a", 0, -1)
		conformance.OK(s, err)
		defer first.Close()
		if got := s.read("a", 500, 100); !bytes.Equal(got, data(1, 1000)[500:600]) {
			s.Error("the second reader read the wrong bytes")
		}
		got, err := io.ReadAll(first)
		conformance.OK(s, err)
		if !bytes.Equal(got, data(1, 1000)) {
			s.Error("the first reader read the wrong bytes")
		}
	}},
	{"of an unknown blob is not found", func(s *suite) {
		s.absent("unknown")
		s.put("a/b", data(1, 10))
		s.absent("a/b/c")
		s.absent("a/bb")
		s.absent("a")
	}},
	{"supports random access through ReaderAt, as io.ReaderAt specifies", func(s *suite) {
		content := data(1, 5000)
		s.put("a", content)
		r := io.NewSectionReader(blob.ReaderAt{Context: s.ctx, Store: s.Store, Name: "a"}, 0, int64(len(content)))
		got := make([]byte, 100)
		for _, offset := range []int64{4900, 0, 1234} {
			_, err := r.ReadAt(got, offset)
			conformance.OK(s, err)
			if !bytes.Equal(got, content[offset:offset+100]) {
				s.Errorf("at %d: read the wrong bytes", offset)
			}
		}
		if n, err := r.ReadAt(got, 4950); n != 50 || err != io.EOF {
			s.Errorf("past the end: %d bytes and %v, want 50 and EOF", n, err)
		}
	}},
}

var headTests = []test{
	{"returns the size and the time of storing", func(s *suite) {
		// Stores may round to whole seconds and may use their own clocks.
		const tolerance = time.Minute
		began := time.Now()
		s.put("a", data(1, 12345))
		info, err := s.Store.Head(s.ctx, "a")
		conformance.OK(s, err)
		if info.Size != 12345 {
			s.Errorf("size %d, want 12345", info.Size)
		}
		if info.StoredAt.Before(began.Add(-tolerance)) || info.StoredAt.After(time.Now().Add(tolerance)) {
			s.Errorf("stored at %v, want about %v", info.StoredAt, began)
		}
	}},
	{"of a replaced blob describes the new blob", func(s *suite) {
		s.put("a", data(1, 10))
		s.put("a", data(1, 20))
		s.holds("a", data(1, 20))
	}},
}

var fetchTests = []test{
	{"makes a blob available as a file", func(s *suite) {
		for _, size := range sizes {
			name := fmt.Sprint("a/", size)
			s.put(name, data(1, size))
			path := filepath.Join(s.TempDir(), "file")
			conformance.OK(s, blob.Fetch(s.ctx, s.Store, name, path))
			s.file(path, data(1, size))
		}
	}},
	{"of an unknown blob is not found", func(s *suite) {
		conformance.Fails(s, blob.Fetch(s.ctx, s.Store, "unknown", filepath.Join(s.TempDir(), "file")), fault.NotFound)
	}},
	{"does not replace a file", func(s *suite) {
		s.put("a", data(1, 10))
		path := filepath.Join(s.TempDir(), "file")
		conformance.OK(s, os.WriteFile(path, []byte("mine"), 0o600))
		if err := blob.Fetch(s.ctx, s.Store, "a", path); err == nil {
			s.Fatal("Link replaced an existing file")
		}
		s.file(path, []byte("mine"))
	}},
}

var linkTests = []test{
	{"survives the replacement and deletion of the blob", func(s *suite) {
		s.put("a", data(1, 1000))
		path := filepath.Join(s.TempDir(), "file")
		s.link("a", path)
		s.put("a", data(2, 2000))
		s.file(path, data(1, 1000))
		conformance.OK(s, s.Store.Delete(s.ctx, "a"))
		s.file(path, data(1, 1000))
	}},
	{"can be removed without changing the blob", func(s *suite) {
		s.put("a", data(1, 1000))
		path := filepath.Join(s.TempDir(), "file")
		s.link("a", path)
		conformance.OK(s, os.Remove(path))
		s.holds("a", data(1, 1000))
	}},
	{"has a read-only mode", func(s *suite) {
		s.put("a", data(1, 1000))
		path := filepath.Join(s.TempDir(), "file")
		s.link("a", path)
		info, err := os.Stat(path)
		conformance.OK(s, err)
		if info.Mode().Perm()&0o222 != 0 {
			s.Errorf("mode %v", info.Mode())
		}
	}},
	{"of an unknown blob is not found", func(s *suite) {
		conformance.Fails(s, s.Store.(blob.Linker).Link(s.ctx, "unknown", filepath.Join(s.TempDir(), "file")), fault.NotFound)
	}},
}

// link links to a blob. It skips the test if the file system does not support links.
func (s *suite) link(name, path string) {
	s.Helper()
	if err := s.Store.(blob.Linker).Link(s.ctx, name, path); err != nil {
		s.Skipf("the file system cannot link: %v", err)
	}
}

func (s *suite) file(path string, want []byte) {
	s.Helper()
	got, err := os.ReadFile(path)
	conformance.OK(s, err)
	if !bytes.Equal(got, want) {
		s.Fatalf("the file contains %d bytes, not the %d bytes of the blob", len(got), len(want))
	}
}
