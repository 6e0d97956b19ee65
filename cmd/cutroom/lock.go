package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folderLock is held by the one server of a data folder. The operating system
// lets go of it when the process ends, however it ends.
type folderLock struct{ file *os.File }

// lockFolder takes the lock, or says who has it.
func lockFolder(path string) (*folderLock, error) {
	file, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := make([]byte, 32)
		n, _ := file.Read(holder)
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("the folder %s is in use by another server (process %s)", path, holder[:n])
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := file.Truncate(0); err == nil {
		fmt.Fprintf(file, "%d", os.Getpid())
	}
	return &folderLock{file}, nil
}

func (l *folderLock) release() { l.file.Close() }
