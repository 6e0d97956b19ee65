// Package diskblob stores blobs as files in a folder. What a call has acknowledged
// is on disk: the bytes, the name, and the folders that lead to it are synced
// before it returns.
//
// The blob "jobs/a/data" is the file of that path below the root. Bytes arrive in
// the root's folder ".tmp", a name that no blob can have, and get their name by a
// rename, so that a blob is complete or absent. A blob's file is never written to
// again: replacing a blob creates a new file, so that a hard link is a copy.
//
// Because names are paths, a blob cannot have the name of another's folder ("a"
// beside "a/b"). Only one process may have a root open.
package diskblob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

// arrivals is the folder for bytes without a name yet. Its dot keeps it apart from
// blobs, see blob.CheckName.
const arrivals = ".tmp"

// Store implements blob.Store and blob.Linker.
type Store struct {
	root    string
	buffers sync.Pool // of *[bufferSize]byte
	// arrived numbers the files in arrivals, which Open has emptied.
	arrived atomic.Uint64
	// folders is locked for writing while folders are created and not yet synced,
	// and while they are removed, so that a folder that exists can be relied on.
	folders   sync.RWMutex
	newcomers newcomers
}

var (
	_ blob.Store  = (*Store)(nil)
	_ blob.Linker = (*Store)(nil)
)

// Open opens the root, creating it if necessary, and removes what writers left
// behind in a crash.
//
// Errors: fault.StorageFull; others of the file system.
func Open(root string) (*Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("folder: %w", err)
	}
	// The folder is kept, because a full disk has no room for a new one.
	if _, err := makeFolders(filepath.Join(root, arrivals)); err != nil {
		return nil, fileError("open", err)
	}
	if err := checkRoot(root); err != nil {
		return nil, fileError("open", err)
	}
	if err := empty(filepath.Join(root, arrivals)); err != nil {
		return nil, fileError("open", err)
	}
	return &Store{root: root, buffers: sync.Pool{New: func() any { return new([bufferSize]byte) }}}, nil
}

// checkRoot returns an error if an entry of the root leads to another place: blobs are moved
// between the folders of the root, and those without a record are set aside.
func checkRoot(root string) error {
	children, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, child := range children {
		path := filepath.Join(root, child.Name())
		switch {
		case child.Type() == fs.ModeSymlink:
			return fmt.Errorf("%s is a link: only the folder %s itself may be one; put back the files that it leads to",
				path, root)
		case child.IsDir():
			if err := sameDisk(root, path); err != nil {
				return err
			}
		case child.Name() == arrivals, child.Name() == aside, child.Name() == markFile && !child.Type().IsRegular():
			return notMade(path)
		}
	}
	return nil
}

func notMade(path string) error {
	return fmt.Errorf("%s is not what the server has made: move it away", path)
}

// sameDisk returns an error if a folder of the root is a mount, into which no file can be
// renamed. A mount of another folder of the same file system is one too.
func sameDisk(root, path string) error {
	var of, below syscall.Stat_t
	if err := errors.Join(syscall.Stat(root, &of), syscall.Stat(path, &below)); err != nil {
		return err
	}
	// This never renames anything, because the name is a dot. Linux refuses another mount first.
	mounted := syscall.Rename(path+"/.", root+"/.")
	if of.Dev != below.Dev || errors.Is(mounted, syscall.EXDEV) {
		return fmt.Errorf("%s is a mount: mount all of %s there", path, root)
	}
	return nil
}

// empty removes the arrivals of an earlier run from their folder.
func empty(path string) error {
	children, err := os.ReadDir(path)
	for _, child := range children {
		if _, other := strconv.ParseUint(child.Name(), 10, 64); other == nil {
			err = errors.Join(err, os.RemoveAll(filepath.Join(path, child.Name())))
		}
	}
	return err
}

// path returns the file path of a name.
func (s *Store) path(name string) (string, error) {
	if err := blob.CheckName(name); err != nil {
		return "", err
	}
	return filepath.Join(s.root, filepath.FromSlash(name)), nil
}

// arrival returns an unused path in arrivals.
func (s *Store) arrival() string {
	return filepath.Join(s.root, arrivals, strconv.FormatUint(s.arrived.Add(1), 10))
}

// Open returns a reader of length bytes from offset; a negative length reads to the
// end. The reader is a file or writes itself as one, so that the system can copy it
// to a connection without moving the bytes through the program.
//
// Errors: fault.NotFound.
func (s *Store) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, fmt.Errorf("folder: open at %d", offset)
	}
	file, size, err := s.openFile(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(min(offset, size), io.SeekStart); err != nil {
		file.Close()
		return nil, fileError("open", err)
	}
	if length < 0 || length >= size-offset {
		return file, nil
	}
	return &span{io.LimitedReader{R: file, N: length}, file}, nil
}

// span is a part of a file.
type span struct {
	io.LimitedReader
	file *os.File
}

// WriteTo writes the rest of the span.
func (s *span) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, &s.LimitedReader) }

// Close closes the file.
func (s *span) Close() error { return s.file.Close() }

// openFile opens the file of a blob and returns its size.
func (s *Store) openFile(ctx context.Context, name string) (*os.File, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	path, err := s.path(name)
	if err != nil {
		return nil, 0, err
	}
	// A pipe that somebody has put there would be waited for.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, readError("open", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		file.Close()
		return nil, 0, readError("open", err)
	}
	return file, info.Size(), nil
}

// Head describes a blob. A blob that Copy linked shows the time of the original,
// because it is the same file.
//
// Errors: fault.NotFound.
func (s *Store) Head(ctx context.Context, name string) (blob.Info, error) {
	if err := ctx.Err(); err != nil {
		return blob.Info{}, err
	}
	path, err := s.path(name)
	if err != nil {
		return blob.Info{}, err
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return blob.Info{}, readError("head", err)
	}
	return blob.Info{Size: info.Size(), StoredAt: info.ModTime()}, nil
}

// Delete deletes a blob durably. It is no error if there is none.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if _, err := s.Head(ctx, name); fault.Is(err, fault.NotFound) {
		return nil // also if the name is a folder's, which is not a blob
	}
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fileError("delete", err)
	}
	return fileError("delete", syncFolder(filepath.Dir(path)))
}

// Link gives the blob's file a second, read-only name.
//
// Errors: fault.NotFound; those of the file system if it cannot link.
func (s *Store) Link(ctx context.Context, name, path string) error {
	if _, err := s.Head(ctx, name); err != nil {
		return err
	}
	source, err := s.path(name)
	if err != nil {
		return err
	}
	if err := os.Link(source, path); err != nil {
		return fmt.Errorf("folder: link: %w", err)
	}
	return nil
}

// readError is fileError, except that a missing file is a blob that does not exist.
func readError(what string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return blob.NotFound(err)
	}
	return fileError(what, err)
}

// fileError converts an error of the file system to one of the domain.
func fileError(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.StorageFull, "There is no room left to store the bytes.")
	}
	return fmt.Errorf("folder: %s: %w", what, err)
}
