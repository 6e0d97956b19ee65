//go:build !race

package httpserver

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func rawCall(call, fd uintptr, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func rawWritev(fd uintptr, pieces [][]byte) (int, error) {
	var vectors [maxPieces]unix.Iovec
	for i, piece := range pieces {
		vectors[i].Base = unsafe.SliceData(piece)
		vectors[i].SetLen(len(piece))
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&vectors)), uintptr(len(pieces)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
