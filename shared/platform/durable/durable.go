// Package durable writes files that, after a crash, have either the old or the new content.
package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Write replaces the file with one that only its owner can read. Before the rename it calls the function `check`, if
// not nil, with the path of the complete file. If Write returns nil, the content and the name are durable. After an
// error, the old file still exists. Errors from reading the content and from check are returned unchanged.
func Write(path string, content io.Reader, check func(path string) error) error {
	// A symbolic link with that name could point to another user's file.
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
