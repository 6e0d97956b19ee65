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

// listed is the maximum number of folder entries that one call reads.
const listed = 256

func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Entry, error] {
	return func(yield func(blob.Entry, error) bool) { s.list(ctx, prefix, yield) }
}

// list returns false once yield has returned false.
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

// Children returns the blobs and prefixes directly below a prefix, in no particular order. The
// empty prefix stands for the entire store. Concurrent changes may be missed.
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

// entryOf returns false for links, pipes and other foreign entries, and for entries that no longer exist.
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

// DeleteAll first removes all blobs below a prefix from the store, durably and atomically. Then it
// deletes their bytes.
func (s *Store) DeleteAll(ctx context.Context, prefix string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := s.path(prefix)
	if err != nil {
		return err
	}
	// Hide the folder before deleting it. After a crash, Open deletes the rest.
	doomed := s.arrival()
	s.folders.Lock()
	err = os.Rename(path, doomed)
	s.folders.Unlock()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		doomed, err = path, nil // no space for the new name, so delete in place
	}
	s.reads.end(prefix)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fileError("delete", err)
	}
	return fileError("delete", errors.Join(syncFolder(filepath.Dir(path)), os.RemoveAll(doomed)))
}

// The prefix may be empty.
func (s *Store) prefixPath(prefix string) (string, error) {
	if prefix == "" {
		return s.root, nil
	}
	return s.path(prefix)
}
