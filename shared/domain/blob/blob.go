// Package blob defines the byte store of the service, which can put a stream, open a range, and
// head, copy and delete blobs. Adapters (a folder, an object store) implement [Store] and run the
// conformance suite in blobtest, which specifies its behaviour.
//
// A name is a path of segments of letters, digits, '.', '_' and '-', joined by slashes, for example
// "jobs/job_01H…/data". No segment begins with a dot.
package blob

import (
	"context"
	"cutroom/shared/domain/ascii"
	"cutroom/shared/domain/fault"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

type Info struct {
	Size     int64
	StoredAt time.Time // when the blob became visible
}

func NotFound(cause error) *fault.Error {
	return fault.Wrap(cause, fault.NotFound, "The blob does not exist.")
}

// Store keeps blobs by name. All methods are safe for concurrent use.
type Store interface {
	// Put stores the stream r under the name and returns the number of bytes. The blob becomes
	// completely visible when Put returns nil, and then survives a crash. If r fails, or the
	// context ends, Put leaves nothing. It replaces an existing blob.
	//
	// Errors: the error of r unchanged; fault.StorageFull.
	Put(ctx context.Context, name string, r io.Reader) (int64, error)

	// Open returns a reader of length bytes from offset, or of the rest if length is negative. A
	// range that exceeds the blob ends at the end of the blob.
	//
	// Errors: fault.NotFound if the blob does not exist.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)

	// Errors: fault.NotFound if the blob does not exist.
	Head(ctx context.Context, name string) (Info, error)

	// Copy makes an independent copy.
	//
	// Errors: fault.NotFound if from does not exist; fault.StorageFull.
	Copy(ctx context.Context, from, to string) error

	// Delete deletes a blob. It succeeds even if the blob does not exist.
	Delete(ctx context.Context, name string) error
}

// Entry is a blob, or a common prefix of blobs.
type Entry struct {
	// Name is the complete name, for example "jobs/job_01H…". A prefix has no trailing slash.
	Name   string
	Prefix bool
	// Info describes a blob. For a prefix, the size is 0, and the time is when a name directly
	// below it was last added or removed.
	Info
}

// Linker is implemented by stores on this machine's file system. A link takes no space.
type Linker interface {
	// Link makes path a read-only link to the blob. It may fail if the file system does not
	// support links. The caller then copies the blob.
	//
	// Errors: fault.NotFound if the blob does not exist.
	Link(ctx context.Context, name, path string) error
}

// CheckName returns an error unless the name has the form given in the package comment. Adapters
// call it first, so that no name can escape the store.
func CheckName(name string) error {
	wellFormed := len(name) <= 512
	for segment := range strings.SplitSeq(name, "/") {
		wellFormed = wellFormed && ascii.Only(segment, "._-") && segment[0] != '.'
	}
	if !wellFormed {
		return fmt.Errorf("blob: invalid name %q", name)
	}
	return nil
}

// Fetch makes a blob available as a local file, with a link if possible, and otherwise with a
// copy. The caller must not write to the file.
//
// Errors: fault.NotFound; file system errors.
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

// ReaderAt provides random access to a blob, for media headers that are not at the start. Each
// read is a ranged request, so callers should make few and large reads.
type ReaderAt struct {
	Context context.Context
	Store   Store
	Name    string
}

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

// ReadFull fills the buffer from r until the context ends. With io.EOF, it returns the last bytes.
// After any other error the buffer's content is invalid.
func ReadFull(ctx context.Context, r io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var read int
		read, err = r.Read(buffer[n:])
		n += read
	}
	return n, err
}
