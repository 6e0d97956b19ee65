// Package blobtest specifies the behavior of [blob.Store] and [blob.Linker].
package blobtest

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

type Harness struct {
	Store blob.Store
	// Leftovers lists everything in the store that is not a blob. It is nil if the store cannot list this.
	Leftovers func(t *testing.T) []string
}

// Run calls `open` once per test. That function must register a cleanup that closes its store.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	conformance.Run(t, func(t *testing.T, group string, test test) {
		h := open(t)
		if _, ok := h.Store.(blob.Linker); group == "Link" && !ok {
			t.Skip("the store's blobs are not files on this machine")
		}
		test.run(&suite{T: t, Harness: h, ctx: conformance.Context(t)})
	},
		conformance.About("Put", putTests), conformance.About("Open", openTests), conformance.About("Head", headTests),
		conformance.About("Copy", copyTests), conformance.About("Delete", deleteTests),
		conformance.About("Names", nameTests), conformance.About("Fetch", fetchTests), conformance.About("Link", linkTests),
	)
}

type test struct {
	name string
	run  func(s *suite)
}

func (t test) Says() string { return t.name }

type suite struct {
	*testing.T
	Harness
	ctx context.Context
}

func data(seed uint64, size int) []byte {
	b := make([]byte, size)
	source := rand.NewPCG(seed, uint64(size))
	for i := range b {
		b[i] = byte(source.Uint64())
	}
	return b
}

func (s *suite) put(name string, content []byte) {
	s.Helper()
	n, err := s.Store.Put(s.ctx, name, bytes.NewReader(content))
	conformance.OK(s, err)
	if n != int64(len(content)) {
		s.Fatalf("stored %d bytes, want %d", n, len(content))
	}
}

func (s *suite) read(name string, offset, length int64) []byte {
	s.Helper()
	r, err := s.Store.Open(s.ctx, name, offset, length)
	conformance.OK(s, err)
	got, err := io.ReadAll(r)
	conformance.OK(s, err)
	conformance.OK(s, r.Close())
	return got
}

func (s *suite) holds(name string, want []byte) {
	s.Helper()
	if got := s.read(name, 0, -1); !bytes.Equal(got, want) {
		s.Fatalf("%s contains %d bytes, not the %d stored bytes", name, len(got), len(want))
	}
	info, err := s.Store.Head(s.ctx, name)
	conformance.OK(s, err)
	if info.Size != int64(len(want)) {
		s.Fatalf("Head reports %[2]d bytes for %[1]s, want %[3]d", name, info.Size, len(want))
	}
}

func (s *suite) absent(name string) {
	s.Helper()
	_, err := s.Store.Head(s.ctx, name)
	conformance.Fails(s, err, fault.NotFound)
	_, err = s.Store.Open(s.ctx, name, 0, -1)
	conformance.Fails(s, err, fault.NotFound)
}

func (s *suite) clean() {
	s.Helper()
	if s.Leftovers == nil {
		return
	}
	if left := s.Leftovers(s.T); len(left) > 0 {
		s.Fatalf("left behind: %v", slices.Sorted(slices.Values(left)))
	}
}
