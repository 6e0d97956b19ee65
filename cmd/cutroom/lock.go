package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folderLock is held by the one server of a data folder. The operating system
// releases it when the process ends, however it ends.
type folderLock struct {
	file *os.File
	// folders are locked too: the folder itself, because people delete lock files that
	// look left over, and the one for engines. Those on file systems that cannot lock
	// folders are left out.
	folders []*os.File
}

// lockFolder takes the lock, or fails and says which process has it. It refuses a folder
// with an entry that the program must not write to (see checkEntries).
func lockFolder(path string) (*folderLock, error) {
	if err := checkEntries(path); err != nil {
		return nil, err
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
	if err := file.Truncate(0); err == nil {
		fmt.Fprintf(file, "%d", os.Getpid())
	}
	return l, nil
}

// lockFolderItself locks the folder if the file system can.
//
// Errors: unix.EWOULDBLOCK if another process holds the lock.
func (l *folderLock) lockFolderItself(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
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
