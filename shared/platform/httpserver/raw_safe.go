//go:build race || !linux

package httpserver

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// rawCall uses package syscall. It tells the race detector that a read follows a write.
func rawCall(call, fd uintptr, p []byte) (n int, errno syscall.Errno) {
	var err error
	if call == syscall.SYS_READ {
		n, err = syscall.Read(int(fd), p)
	} else {
		n, err = syscall.Write(int(fd), p)
	}
	errno, _ = err.(syscall.Errno) // package syscall returns no other errors
	return n, errno
}

func rawWritev(fd uintptr, pieces [][]byte) (int, syscall.Errno) {
	n, err := unix.Writev(int(fd), pieces)
	errno, _ := err.(syscall.Errno)
	return n, errno
}
