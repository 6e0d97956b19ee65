package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing/iotest"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

var errReader = errors.New("the sender hung up")

var sizes = []int{0, 1, 2, 4095, 4096, 4097, 256<<10 - 1, 256 << 10, 256<<10 + 1, 3<<20 + 7}

var putTests = []test{
	{"stores blobs of any size", func(s *suite) {
		for _, size := range sizes {
			name, content := fmt.Sprint("size/", size), data(1, size)
			s.put(name, content)
			s.holds(name, content)
		}
		s.clean()
	}},
	{"accepts reads of any size", func(s *suite) {
		content := data(2, 600<<10)
		for name, r := range map[string]io.Reader{
			"halves":          iotest.HalfReader(bytes.NewReader(content)),
			"with-the-end":    iotest.DataErrReader(bytes.NewReader(content)),
			"empty-reads-too": &hesitant{Reader: bytes.NewReader(content)},
		} {
			n, err := s.Store.Put(s.ctx, name, r)
			conformance.OK(s, err)
			if n != int64(len(content)) {
				s.Errorf("%s: stored %d bytes, want %d", name, n, len(content))
			}
			s.holds(name, content)
		}
		n, err := s.Store.Put(s.ctx, "single-bytes", iotest.OneByteReader(bytes.NewReader(content[:5000])))
		conformance.OK(s, err)
		if n != 5000 {
			s.Errorf("stored %d bytes, want 5000", n)
		}
		s.holds("single-bytes", content[:5000])
	}},
	{"replaces a blob with the same name", func(s *suite) {
		s.put("a", data(1, 500<<10))
		for seed, size := range []int{300 << 10, 900 << 10, 0, 1} {
			s.put("a", data(uint64(seed), size))
			s.holds("a", data(uint64(seed), size))
		}
		s.clean()
	}},
	{"shows nothing before it returns", func(s *suite) {
		content := data(1, 1<<20)
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, err := s.Store.Put(s.ctx, "a/b", r)
			done <- err
		}()
		_, err := w.Write(content)
		conformance.OK(s, err)
		s.absent("a/b")
		conformance.OK(s, w.Close())
		conformance.OK(s, <-done)
		s.holds("a/b", content)
	}},
	{"returns the reader's error unchanged, and leaves nothing behind", func(s *suite) {
		refusal := fault.New(fault.TooLarge, "The part is too large.")
		for _, size := range sizes {
			for _, cause := range []error{errReader, refusal, io.ErrUnexpectedEOF} {
				_, err := s.Store.Put(s.ctx, "a/b/c", io.MultiReader(bytes.NewReader(data(1, size)), iotest.ErrReader(cause)))
				if err != cause {
					s.Fatalf("after %d bytes: error %#v, want %#v itself", size, err, cause)
				}
				s.absent("a/b/c")
				s.clean()
			}
		}
	}},
	{"keeps the existing blob if it fails", func(s *suite) {
		content := data(1, 300<<10)
		s.put("a", content)
		_, err := s.Store.Put(s.ctx, "a", io.MultiReader(bytes.NewReader(data(2, 700<<10)), iotest.ErrReader(errReader)))
		if !errors.Is(err, errReader) {
			s.Fatalf("error %v, want the reader's error", err)
		}
		s.holds("a", content)
		s.clean()
	}},
	{"ends with the context, and leaves nothing behind", func(s *suite) {
		for _, size := range sizes {
			ctx, cancel := context.WithCancel(s.ctx)
			r := io.MultiReader(bytes.NewReader(data(1, size)), &ending{cancel})
			if _, err := s.Store.Put(ctx, "a/b/c", r); !errors.Is(err, context.Canceled) {
				s.Fatalf("after %d bytes: error %v, want the context's error", size, err)
			}
			s.absent("a/b/c")
			s.clean()
		}
	}},
	{"with an ended context stores nothing", func(s *suite) {
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		if _, err := s.Store.Put(ctx, "a", bytes.NewReader(nil)); !errors.Is(err, context.Canceled) {
			s.Fatalf("error %v, want the context's error", err)
		}
		s.absent("a")
		s.clean()
	}},
	{"called concurrently for one name stores one complete blob", func(s *suite) {
		const racers = 8
		contents := make([][]byte, racers)
		errs := make([]error, racers)
		var all sync.WaitGroup
		for i := range racers {
			contents[i] = data(uint64(i), 300<<10+i)
			all.Go(func() { _, errs[i] = s.Store.Put(s.ctx, "a/b", bytes.NewReader(contents[i])) })
		}
		all.Wait()
		for _, err := range errs {
			conformance.OK(s, err)
		}
		got := s.read("a/b", 0, -1)
		if !slices.ContainsFunc(contents, func(content []byte) bool { return bytes.Equal(got, content) }) {
			s.Fatal("the blob equals none of the stored versions")
		}
		s.clean()
	}},
	{"called concurrently for many names in new folders stores all blobs", func(s *suite) {
		const racers = 16
		errs := make([]error, racers)
		var all sync.WaitGroup
		for i := range racers {
			all.Go(func() {
				_, errs[i] = s.Store.Put(s.ctx, fmt.Sprint("x/y/", i%4, "/", i), bytes.NewReader(data(uint64(i), 100)))
			})
		}
		all.Wait()
		for i, err := range errs {
			conformance.OK(s, err)
			s.holds(fmt.Sprint("x/y/", i%4, "/", i), data(uint64(i), 100))
		}
	}},
}

// hesitant returns zero bytes without an error from every other Read.
type hesitant struct {
	io.Reader
	reads int
}

func (h *hesitant) Read(p []byte) (int, error) {
	if h.reads++; h.reads%2 == 1 {
		return 0, nil
	}
	return h.Reader.Read(p)
}

// ending is an endless reader whose reads cancel the context.
type ending struct{ cancel context.CancelFunc }

func (e *ending) Read(p []byte) (int, error) {
	e.cancel()
	return min(len(p), 100), nil
}

var copyTests = []test{
	{"makes a blob with the same bytes", func(s *suite) {
		for _, size := range sizes {
			s.put("from", data(1, size))
			to := fmt.Sprint("copies/of/", size)
			conformance.OK(s, s.Store.Copy(s.ctx, "from", to))
			s.holds(to, data(1, size))
			s.holds("from", data(1, size))
		}
		s.clean()
	}},
	{"survives the deletion of the original", func(s *suite) {
		s.put("from", data(1, 1000))
		conformance.OK(s, s.Store.Copy(s.ctx, "from", "to"))
		s.put("from", data(2, 2000))
		s.holds("to", data(1, 1000))
		conformance.OK(s, s.Store.Delete(s.ctx, "from"))
		s.holds("to", data(1, 1000))
	}},
	{"can be replaced and deleted without changing the original", func(s *suite) {
		s.put("from", data(1, 1000))
		conformance.OK(s, s.Store.Copy(s.ctx, "from", "to"))
		s.put("to", data(2, 2000))
		s.holds("from", data(1, 1000))
		conformance.OK(s, s.Store.Copy(s.ctx, "from", "to"))
		conformance.OK(s, s.Store.Delete(s.ctx, "to"))
		s.holds("from", data(1, 1000))
	}},
	{"replaces a blob with the same name", func(s *suite) {
		s.put("from", data(1, 1000))
		s.put("to", data(2, 2000))
		conformance.OK(s, s.Store.Copy(s.ctx, "from", "to"))
		s.holds("to", data(1, 1000))
		s.clean()
	}},
	{"again, and onto itself, changes nothing", func(s *suite) {
		s.put("from", data(1, 1000))
		conformance.OK(s, s.Store.Copy(s.ctx, "from", "to"))
		conformance.OK(s, s.Store.Copy(s.ctx, "from", "to"))
		conformance.OK(s, s.Store.Copy(s.ctx, "to", "from"))
		conformance.OK(s, s.Store.Copy(s.ctx, "from", "from"))
		s.holds("from", data(1, 1000))
		s.holds("to", data(1, 1000))
		s.clean()
	}},
	{"of an unknown blob is not found, and changes nothing", func(s *suite) {
		s.put("to", data(1, 1000))
		conformance.Fails(s, s.Store.Copy(s.ctx, "unknown", "to"), fault.NotFound)
		s.holds("to", data(1, 1000))
		conformance.Fails(s, s.Store.Copy(s.ctx, "unknown", "new"), fault.NotFound)
		s.absent("new")
		s.clean()
	}},
}

var deleteTests = []test{
	{"deletes only the named blob", func(s *suite) {
		for _, name := range []string{"a/b", "a/bc", "a/c/b"} {
			s.put(name, data(1, 10))
		}
		conformance.OK(s, s.Store.Delete(s.ctx, "a/b"))
		s.absent("a/b")
		s.holds("a/bc", data(1, 10))
		s.holds("a/c/b", data(1, 10))
	}},
	{"of a missing blob succeeds", func(s *suite) {
		conformance.OK(s, s.Store.Delete(s.ctx, "unknown"))
		conformance.OK(s, s.Store.Delete(s.ctx, "un/known"))
		s.put("a/b", data(1, 10))
		conformance.OK(s, s.Store.Delete(s.ctx, "a/b"))
		conformance.OK(s, s.Store.Delete(s.ctx, "a/b"))
	}},
	{"of a prefix deletes nothing", func(s *suite) {
		s.put("a/b", data(1, 10))
		conformance.OK(s, s.Store.Delete(s.ctx, "a"))
		s.holds("a/b", data(1, 10))
	}},
	{"allows a new blob with the same name", func(s *suite) {
		s.put("a/b", data(1, 10))
		conformance.OK(s, s.Store.Delete(s.ctx, "a/b"))
		s.put("a/b", data(2, 20))
		s.holds("a/b", data(2, 20))
	}},
}

var nameTests = []test{
	{"that are valid can be used", func(s *suite) {
		for _, name := range []string{"a", "0", "_", "-a", "jobs/job_01HZZZZZZZ/reference_image.0", "a.b/c..d/e-", "A/B",
			"tmp/a"} {
			s.put(name, []byte(name))
			s.holds(name, []byte(name))
		}
	}},
	{"that are invalid are rejected", func(s *suite) {
		s.put("a/b", data(1, 10))
		for _, name := range []string{
			"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", ".a", "a/.b", "a b", "a\\b", "a\x00b", "é",
			"a/b\n", "a:b",
		} {
			if blob.CheckName(name) == nil {
				s.Fatalf("CheckName accepts %q", name)
			}
			_, err := s.Store.Put(s.ctx, name, bytes.NewReader(nil))
			s.malformed("Put", name, err)
			_, err = s.Store.Open(s.ctx, name, 0, -1)
			s.malformed("Open", name, err)
			_, err = s.Store.Head(s.ctx, name)
			s.malformed("Head", name, err)
			s.malformed("Copy from", name, s.Store.Copy(s.ctx, name, "c"))
			s.malformed("Copy to", name, s.Store.Copy(s.ctx, "a/b", name))
			s.malformed("Delete", name, s.Store.Delete(s.ctx, name))
		}
		s.holds("a/b", data(1, 10))
		s.absent("c")
		s.clean()
	}},
}

// malformed fails the test unless the call rejected the name as invalid. fault.NotFound is not enough.
func (s *suite) malformed(call, name string, err error) {
	s.Helper()
	if fault.CodeOf(err) != fault.Internal {
		s.Errorf("%s of %q: error %v, want an error that is not a fault", call, name, err)
	}
}
