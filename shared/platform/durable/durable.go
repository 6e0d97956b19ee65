// Package durable writes files that have the old or the new content after a crash, never both.
package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Write replaces the file, readable only by its owner. Before the rename it calls check, unless
// nil, with the path of the complete file. When it returns nil, content and name are durable. After
// an error, the old file still exists. Errors of the content and of check are unchanged.
func Write(path string, content io.Reader, check func(path string) error) error {
	// A symbolic link with that name could lead to another user's file.
	part, err := os.OpenFile(path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(part, content)
	if err == nil {
		err = part.Sync()
	}
	err = errors.Join(err, part.Close())
	if err == nil && check != nil {
		err = check(part.Name())
	}
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
