// Package diskblob stores blobs as files in a folder. Before a call returns, it syncs the bytes, the file's name, and
// the folders in its path to disk.
//
// The blob "jobs/a/data" is the file at that path below the root. Bytes are first written to the folder ".tmp", which
// cannot be a blob's name. A rename then gives the file its name, so a blob is either complete or absent. Replacing a
// blob creates a new file, so a hard link can serve as a copy.
//
// Names are paths, so the blobs "a" and "a/b" cannot both exist. Only one process may have a root open.
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
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/fault"
)

const arrivals = ".tmp"

type Store struct {
	root    string
	buffers sync.Pool // holds *[bufferSize]byte
	// arrived counts the files created in arrivals. Each file is named after its number.
	arrived atomic.Uint64
	// folders is write-locked while folders are being removed, or have been created but not yet synced.
	folders   sync.RWMutex
	newcomers newcomers
	reads     reads
}

var (
	_ blob.Store  = (*Store)(nil)
	_ blob.Linker = (*Store)(nil)
)

// Open creates a missing root and removes leftovers from a crash.
//
// Errors: fault.StorageFull; file system errors.
func Open(root string) (*Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("folder: %w", err)
	}
	// Keep the folder, because a full disk may have no space for a new one.
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

// checkRoot returns an error if an entry of the root is a symbolic link or a mount point, because blobs are renamed
// between folders.
func checkRoot(root string) error {
	children, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, child := range children {
		path := filepath.Join(root, child.Name())
		switch {
		case child.Type() == fs.ModeSymlink:
			return fmt.Errorf("%s is a link, but only the folder %s itself may be a link: move the linked files back",
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
	return fmt.Errorf("%s is neither a file nor a folder of the server: move it elsewhere", path)
}

// sameDisk returns an error if a folder in the root is a mount point, because files cannot be renamed into it.
func sameDisk(root, path string) error {
	var of, below syscall.Stat_t
	if err := errors.Join(syscall.Stat(root, &of), syscall.Stat(path, &below)); err != nil {
		return err
	}
	// Linux checks first whether both paths are on the same mount. The call never renames anything, because a target
	// of "." is invalid.
	mounted := syscall.Rename(path+"/.", root+"/.")
	if of.Dev != below.Dev || errors.Is(mounted, syscall.EXDEV) {
		return fmt.Errorf("%s is a mount point: mount the entire folder %s instead", path, root)
	}
	return nil
}

func empty(path string) error {
	children, err := os.ReadDir(path)
	for _, child := range children {
		if _, other := strconv.ParseUint(child.Name(), 10, 64); other == nil {
			err = errors.Join(err, os.RemoveAll(filepath.Join(path, child.Name())))
		}
	}
	return err
}

func (s *Store) path(name string) (string, error) {
	if err := blob.CheckName(name); err != nil {
		return "", err
	}
	return filepath.Join(s.root, filepath.FromSlash(name)), nil
}

func (s *Store) arrival() string {
	return filepath.Join(s.root, arrivals, strconv.FormatUint(s.arrived.Add(1), 10))
}

// Open returns a reader from which the system can copy bytes directly to a connection.
func (s *Store) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, fmt.Errorf("folder: open at the negative offset %d", offset)
	}
	file, size, err := s.openFile(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(min(offset, size), io.SeekStart); err != nil {
		file.Close()
		return nil, fileError("open", err)
	}
	if length < 0 || length > size-offset {
		length = max(0, size-offset)
	}
	opened := s.reads.begin(name, file, length)
	if _, err := s.Head(ctx, name); err != nil { // deleted before the reader was registered
		opened.Close()
		return nil, err
	}
	return opened, nil
}

func (s *Store) openFile(ctx context.Context, name string) (*os.File, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	path, err := s.path(name)
	if err != nil {
		return nil, 0, err
	}
	// Without O_NONBLOCK, opening a named pipe would wait for a writer.
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

// For a blob created by Copy, Head returns the original's time, because both are the same file.
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

func (s *Store) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if _, err := s.Head(ctx, name); fault.Is(err, fault.NotFound) {
		return nil // missing, or a folder, which is not a blob
	}
	err = os.Remove(path)
	s.reads.end(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fileError("delete", err)
	}
	return fileError("delete", syncFolder(filepath.Dir(path)))
}

// Link returns an error if the file system does not support hard links.
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

// readError is like fileError, but returns fault.NotFound for a missing file.
func readError(what string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return blob.NotFound(err)
	}
	return fileError(what, err)
}

func fileError(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		full := fault.Wrap(err, fault.StorageFull, "The disk is full, so the bytes cannot be stored.")
		full.RetryAfter = time.Minute
		return full
	}
	return fmt.Errorf("folder: %s: %w", what, err)
}
