package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// giveToOwner gives root's files in the data folder to the folder's owner, because a server running
// as another user could not open them. If everythingBelow is true, it covers the entire folder;
// otherwise only the server's own files, such as the database.
//
// It does nothing if the user is not root or if root owns the folder.
func giveToOwner(folder string, everythingBelow bool) error {
	if os.Geteuid() != 0 {
		return nil
	}
	// The server's user may change the folder at any time, so use os.Root, which does not follow links that lead out
	// of it.
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nil
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // already deleted
		}
		if err != nil || path == "." {
			return err
		}
		if err := giveTo(root, path, owner); err != nil {
			return err
		}
		if entry.IsDir() && !everythingBelow {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("change the owner of files in %s: %w", folder, err)
	}
	return nil
}

// giveTo gives one entry to the owner if root owns it. It skips a file with several hard links, because the same file
// may exist elsewhere, where root must keep it.
func giveTo(root *os.Root, path string, owner *syscall.Stat_t) error {
	info, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	have, ok := info.Sys().(*syscall.Stat_t)
	if !ok || have.Uid != 0 || (!info.IsDir() && have.Nlink > 1) {
		return nil
	}
	if err := root.Lchown(path, int(owner.Uid), int(owner.Gid)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
