package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// folderLock is the lock of a data folder, which only one server can hold. The operating system
// releases it when the process exits or crashes.
type folderLock struct {
	file *os.File
	// folders holds the locked folders: the data folder, and the folders of the database, the blobs and
	// the engines, which may be elsewhere. The lock file is not enough, because people delete it as a
	// leftover. Folders on file systems without locks are skipped.
	folders []*os.File
}

// lockFolder locks a data folder. If the folder is locked already, the error names the process that holds the lock.
func lockFolder(path string) (*folderLock, error) {
	if _, err := os.ReadDir(path); err != nil {
		return nil, err // before anything is created in another user's folder
	}
	file, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l := &folderLock{file: file}
	if err = lockFile(file); err == nil {
		err = l.lockFolderItself(path)
	}
	if err != nil {
		holder := make([]byte, 32)
		n, _ := file.Read(holder)
		l.release()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("the folder %s is in use by another server (process %s)", path,
				cmp.Or(string(holder[:n]), "unknown"))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := l.lockEntries(path); err != nil {
		l.release()
		return nil, err
	}
	if err := file.Truncate(0); err == nil {
		fmt.Fprintf(file, "%d", os.Getpid())
	}
	return l, nil
}

// lockEntries locks the folders of the database and the blobs if they exist, because links in two
// data folders may point to the same folder.
func (l *folderLock) lockEntries(path string) error {
	for _, name := range []string{"cutroom.db", "blobs"} {
		target, err := filepath.EvalSymlinks(filepath.Join(path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && name == "cutroom.db" {
			// With a second hard link, another server could open the database with a different write-ahead log.
			info, statErr := os.Stat(target)
			if statErr == nil && info.Sys().(*syscall.Stat_t).Nlink > 1 {
				return fmt.Errorf("%s has hard links: replace it with a copy of the file", filepath.Join(path, name))
			}
			target, err = filepath.Dir(target), statErr
		}
		if err == nil {
			err = l.lockFolderItself(target)
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("%s: the folder %s is in use by another server: give each server its own folder",
				filepath.Join(path, name), target)
		}
		if err != nil {
			return fmt.Errorf("lock %s: %w", filepath.Join(path, name), err)
		}
	}
	return nil
}

// lockFolderItself locks the folder if the file system supports locks. It does nothing if this lock
// already includes the folder. It returns unix.EWOULDBLOCK if another process holds the lock.
func (l *folderLock) lockFolderItself(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := folder.Stat()
	if err != nil {
		return errors.Join(err, folder.Close())
	}
	for _, locked := range l.folders {
		if other, err := locked.Stat(); err == nil && os.SameFile(info, other) {
			return folder.Close()
		}
	}
	switch err := lockFile(folder); {
	case err == nil:
		l.folders = append(l.folders, folder)
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return errors.Join(err, folder.Close())
	}
	return folder.Close()
}

func lockFile(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

func (l *folderLock) release() {
	l.file.Close()
	for _, folder := range l.folders {
		folder.Close()
	}
}
