//go:build !race

package httpserver

import (
	"syscall"
	"unsafe"
)

func rawCall(call, fd uintptr, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
