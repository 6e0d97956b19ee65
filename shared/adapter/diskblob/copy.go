package diskblob

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// Copy makes to a blob with from's bytes, durably: by a hard link where the
// file system can, at no cost in bytes.
//
// Errors: fault.NotFound when there is no from; fault.StorageFull.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	source, err := s.path(from)
	if err != nil {
		return err
	}
	target, err := s.path(to)
	if err != nil {
		return err
	}
	link := s.arrival()
	if err := os.Link(source, link); err != nil {
		return s.copyBytes(ctx, from, to)
	}
	err = s.rename(link, target)
	// A rename onto another link of the same file succeeds and leaves both.
	if removeErr := os.Remove(link); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return fileError("copy", err)
}

// copyBytes is Copy where there is no link to be had, for whatever reason.
func (s *Store) copyBytes(ctx context.Context, from, to string) error {
	source, _, err := s.openFile(ctx, from)
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = s.Put(ctx, to, source)
	return err
}
