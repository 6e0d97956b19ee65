// Package blob defines the service's byte store. It can store a stream, read a range, and stat,
// copy and delete blobs. Adapters (a folder, an object store) implement [Store] and run the
// conformance suite in blobtest, which specifies its behavior.
//
// A name is a slash-separated path of segments such as "jobs/job_01H…/data". A segment consists of
// letters, digits, '.', '_' and '-', and does not begin with a dot.
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
	// Put stores the stream r under the name and returns the number of bytes. It replaces an
	// existing blob. The blob becomes visible atomically when Put returns nil, and survives a crash
	// from then on. If r fails or the context ends, Put stores nothing.
	//
	// Errors: the unchanged error of r; fault.StorageFull.
	Put(ctx context.Context, name string, r io.Reader) (int64, error)

	// Open returns a reader for the range given by offset and length. If length is negative, the range is everything
	// after offset. A range that extends past the blob is truncated.
	//
	// Errors: fault.NotFound if the blob does not exist.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)

	// Errors: fault.NotFound if the blob does not exist.
	Head(ctx context.Context, name string) (Info, error)

	// Copy makes an independent copy.
	//
	// Errors: fault.NotFound if the source does not exist; fault.StorageFull.
	Copy(ctx context.Context, from, to string) error

	// Delete deletes a blob. Deleting a blob that does not exist is not an error.
	Delete(ctx context.Context, name string) error
}

// Entry is a blob, or a common prefix of blobs.
type Entry struct {
	// Name is the complete name, for example "jobs/job_01H…". A prefix has no trailing slash.
	Name   string
	Prefix bool
	// Info describes the blob. For a prefix, the size is 0, and the time is when a name directly
	// below it was last added or removed.
	Info
}

// Linker is implemented by stores on the local file system. A link takes no disk space.
type Linker interface {
	// Link makes path a read-only link to the blob. It may fail if the file system does not support
	// links. In that case the caller copies the blob.
	//
	// Errors: fault.NotFound if the blob does not exist.
	Link(ctx context.Context, name, path string) error
}

// CheckName returns an error if the name is not in the format described in the package comment.
// Adapters call it first, so that no name can refer to a file outside the store.
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

// Fetch makes a blob available as a local file, by a link if possible, otherwise by copying. The
// caller must not write to the file.
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

// ReaderAt provides random access to a blob, for media headers that are not at the start. Each read
// is a range request, so callers should make a few large reads.
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

// ReadFull reads from r until the buffer is full. It stops when the context ends. At the end of r it returns the
// number of bytes read and io.EOF. After any other error, the buffer's content is undefined.
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
