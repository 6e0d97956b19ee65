//go:build !race

package httpserver

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func rawCall(call, fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	return int(n), errno
}

func rawWritev(fd uintptr, pieces [][]byte) (int, syscall.Errno) {
	var vectors [maxPieces]unix.Iovec
	for i, piece := range pieces {
		vectors[i].Base = unsafe.SliceData(piece)
		vectors[i].SetLen(len(piece))
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&vectors)), uintptr(len(pieces)))
	return int(n), errno
}
