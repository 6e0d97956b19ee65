package vp8

import (
	"os"

	"golang.org/x/sys/unix"
)

// The size is sealed, because a helper that shrank the memory would crash the server.
func newShared(size int) (*os.File, []byte, error) {
	fd, err := unix.MemfdCreate("cutroom-vp8", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, err
	}
	file := os.NewFile(uintptr(fd), "cutroom-vp8")
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	memory, err := mapShared(fd, size)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, memory, nil
}
