package diskblob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"cutroom/shared/domain/blob"
)

// listed is how many entries of a folder are read at once.
const listed = 256

// List returns every blob below a prefix, at any depth, as Children does.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Entry, error] {
	return func(yield func(blob.Entry, error) bool) { s.list(ctx, prefix, yield) }
}

// list reports whether the caller wants more.
func (s *Store) list(ctx context.Context, prefix string, yield func(blob.Entry, error) bool) bool {
	for entry, err := range s.Children(ctx, prefix) {
		if err == nil && entry.Prefix {
			if !s.list(ctx, entry.Name, yield) {
				return false
			}
		} else if !yield(entry, err) {
			return false
		}
	}
	return true
}

// Children returns the entries directly below a prefix such as "jobs", in no order:
// blobs, and prefixes of more. The empty prefix is the whole store. Entries added
// or removed meanwhile may be missed.
func (s *Store) Children(ctx context.Context, prefix string) iter.Seq2[blob.Entry, error] {
	return func(yield func(blob.Entry, error) bool) {
		prefix := strings.TrimSuffix(prefix, "/")
		path, err := s.prefixPath(prefix)
		if err != nil {
			yield(blob.Entry{}, err)
			return
		}
		folder, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(blob.Entry{}, fileError("list", err))
			return
		}
		defer folder.Close()
		for {
			if err := ctx.Err(); err != nil {
				yield(blob.Entry{}, err)
				return
			}
			children, err := folder.ReadDir(listed)
			for _, child := range children {
				entry, ok := entryOf(prefix, child)
				if ok && !yield(entry, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(blob.Entry{}, fileError("list", err))
				return
			}
		}
	}
}

// entryOf describes a file or folder below a prefix, if it is the store's and still
// exists. Links, pipes and the like are not the store's.
func entryOf(prefix string, child fs.DirEntry) (blob.Entry, bool) {
	name := child.Name()
	if prefix != "" {
		name = prefix + "/" + name
	}
	info, err := child.Info()
	if err != nil || blob.CheckName(name) != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return blob.Entry{}, false
	}
	entry := blob.Entry{Name: name, Prefix: info.IsDir(), Info: blob.Info{StoredAt: info.ModTime()}}
	if !entry.Prefix {
		entry.Size = info.Size()
	}
	return entry, true
}

// DeleteAll deletes every blob below a prefix such as "jobs/job_01H…": it removes
// them all from the store at once and durably, and then deletes their bytes. It is
// no error if there are none.
func (s *Store) DeleteAll(ctx context.Context, prefix string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := s.path(prefix)
	if err != nil {
		return err
	}
	// Hide the folder first: what a crash leaves of it is removed by Open.
	doomed := s.arrival()
	s.folders.Lock()
	err = os.Rename(path, doomed)
	s.folders.Unlock()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		doomed, err = path, nil // no space for the new name: delete it in place
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fileError("delete", err)
	}
	return fileError("delete", errors.Join(syncFolder(filepath.Dir(path)), os.RemoveAll(doomed)))
}

// prefixPath returns the folder of a prefix, which may be empty.
func (s *Store) prefixPath(prefix string) (string, error) {
	if prefix == "" {
		return s.root, nil
	}
	return s.path(prefix)
}
