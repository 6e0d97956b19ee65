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

// maxPieces is how many pieces RawWritev writes at most.
const maxPieces = 16

// RawWritev writes pieces, or the first ones if there are many, like RawCall.
func RawWritev(fd uintptr, pieces [][]byte) (n int, err error) {
	pieces = pieces[:min(len(pieces), maxPieces)]
	for err = syscall.EINTR; err == syscall.EINTR; {
		n, err = rawWritev(fd, pieces)
	}
	return max(n, 0), err
}
