package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// giveToOwner gives what root owns in the data folder to the folder's owner. Root
// works on the folder of a server that runs as a user of its own, which could not
// open what root has made there. Where everything below is true it is all that the
// folder holds, else its own entries alone, which the records are among.
//
// For others than root, and in root's own folder, it does nothing.
func giveToOwner(folder string, everythingBelow bool) error {
	if os.Geteuid() != 0 {
		return nil
	}
	// The server's user may change the folder meanwhile: no link leads out of a Root.
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
			return nil // gone meanwhile
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
		return fmt.Errorf("give %s to its owner: %w", folder, err)
	}
	return nil
}

// giveTo gives the owner one entry if it is root's. A file that has other names is
// left alone: it may be one of root's from elsewhere.
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
