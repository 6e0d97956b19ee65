package httpserver

import (
	"io"
	"syscall"
)

// RawCall makes a read or write system call on a non-blocking socket. Package syscall would notify Go's scheduler, which
// then often wakes its monitoring thread, and that takes longer than the call.
func RawCall(call, fd uintptr, p []byte) (n int, err error) {
	for err = syscall.EINTR; err == syscall.EINTR; {
		n, err = rawCall(call, fd, p)
	}
	if n == 0 && err == nil && call == syscall.SYS_READ {
		err = io.EOF
	}
	return max(n, 0), err
}
