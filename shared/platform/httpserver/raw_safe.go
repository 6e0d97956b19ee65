//go:build race || !linux

package httpserver

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// rawCall uses package syscall. It tells the race detector that a read follows a write.
func rawCall(call, fd uintptr, p []byte) (int, error) {
	if call == syscall.SYS_READ {
		return syscall.Read(int(fd), p)
	}
	return syscall.Write(int(fd), p)
}

func rawWritev(fd uintptr, pieces [][]byte) (int, error) { return unix.Writev(int(fd), pieces) }
