package diskblob

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// Copy makes a hard link, which takes no space, if the file system supports it.
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
	// Remove the link, because renaming it to another link of the same file succeeds but does nothing.
	if removeErr := os.Remove(link); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return fileError("copy", err)
}

func (s *Store) copyBytes(ctx context.Context, from, to string) error {
	source, _, err := s.openFile(ctx, from)
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = s.Put(ctx, to, source)
	return err
}
