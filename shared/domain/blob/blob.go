// Package blob says what the service needs of a place for bytes: put a stream,
// open a range, head, copy, delete. Adapters (a folder, an object store) satisfy
// [Store] and run the conformance suite in blobtest, which specifies its
// behaviour.
//
// A name is a path of segments of letters, digits, '.', '_' and '-', joined by
// slashes, for example "jobs/job_01H…/data". No segment begins with a dot.
package blob

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
)

// Info describes a stored blob.
type Info struct {
	// Size is in bytes.
	Size int64
	// StoredAt is when the blob became visible.
	StoredAt time.Time
}

// Store keeps blobs by name. All methods are safe for concurrent use.
type Store interface {
	// Put streams r to the name and returns the number of bytes stored. The
	// blob becomes visible whole, once, when Put returns nil, and from then on
	// it survives a crash. When r fails, or the context ends, nothing becomes
	// visible and nothing is left behind. A blob that has the name is replaced.
	//
	// Errors: the error of r as it is; fault.StorageFull when there is no room.
	Put(ctx context.Context, name string, r io.Reader) (int64, error)

	// Open reads length bytes from offset; a negative length reads to the end.
	// A range that reaches past the end gives what there is.
	//
	// Errors: fault.NotFound when there is no such blob.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)

	// Head describes a blob.
	//
	// Errors: fault.NotFound when there is no such blob.
	Head(ctx context.Context, name string) (Info, error)

	// Copy makes to a blob with from's bytes, independent of from's later life.
	//
	// Errors: fault.NotFound when there is no from; fault.StorageFull.
	Copy(ctx context.Context, from, to string) error

	// Delete removes a blob. That there is none is no error.
	Delete(ctx context.Context, name string) error
}

// Entry is a blob, or a prefix that blobs have in common, as stores that can be
// looked through list them.
type Entry struct {
	// Name is the whole name, "jobs/job_01H…" for example.
	Name string
	// Prefix says that the entry is a prefix, without its slash.
	Prefix bool
	// Info describes a blob. Of a prefix the size is 0 and the time is when a
	// name directly under it last came or went.
	Info
}

// Linker is an ability of stores whose blobs are files of this machine: a blob
// can be given a second name in the file system, at no cost in bytes.
type Linker interface {
	// Link makes path a read-only stand-in for the blob. It may fail where the
	// file system cannot do it; the caller then copies.
	//
	// Errors: fault.NotFound when there is no such blob.
	Link(ctx context.Context, name, path string) error
}

// nameForm is what a blob's name looks like; see the package comment.
var nameForm = regexp.MustCompile(`^[0-9A-Za-z_-][0-9A-Za-z._-]*(/[0-9A-Za-z_-][0-9A-Za-z._-]*)*$`)

// CheckName returns an error when the name is not of the form that the package
// comment gives. Adapters call it first, so that no name reaches out of a store.
func CheckName(name string) error {
	if len(name) > 512 || !nameForm.MatchString(name) {
		return fmt.Errorf("blob: malformed name %q", name)
	}
	return nil
}

// Fetch brings a blob to a file of this machine, by link where the store can,
// else by copy. The file must not be written to.
//
// Errors: fault.NotFound when there is no such blob; errors of the file system.
func Fetch(ctx context.Context, s Store, name, path string) error {
	if l, ok := s.(Linker); ok {
		if err := l.Link(ctx, name, path); err == nil {
			return nil
		}
	}
	r, err := s.Open(ctx, name, 0, -1)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// ReaderAt reads a blob at random, for headers that are not at its front. Each
// read is one ranged request, so callers read in few, large steps.
type ReaderAt struct {
	// Context bounds every read.
	Context context.Context
	Store   Store
	Name    string
}

// ReadAt reads len(p) bytes from off, as io.ReaderAt says.
func (b ReaderAt) ReadAt(p []byte, off int64) (int, error) {
	r, err := b.Store.Open(b.Context, b.Name, off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	defer r.Close()
	n, err := io.ReadFull(r, p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}
