package httpserver

import (
	"io"
	"syscall"
)

// RawCall makes a read or write system call on a non-blocking socket. Package syscall would notify Go's scheduler, which
// then often wakes its monitoring thread, and that takes longer than the call.
func RawCall(call, fd uintptr, p []byte) (n int, err error) {
	n, errno := rawCall(call, fd, p)
	for errno == syscall.EINTR {
		n, errno = rawCall(call, fd, p)
	}
	if errno != 0 {
		return 0, errno
	}
	if n == 0 && call == syscall.SYS_READ {
		return 0, io.EOF
	}
	return n, nil
}

// maxPieces is how many pieces RawWritev writes at most.
const maxPieces = 16

// RawWritev writes pieces, or the first ones if there are many, like RawCall.
func RawWritev(fd uintptr, pieces [][]byte) (n int, err error) {
	pieces = pieces[:min(len(pieces), maxPieces)]
	n, errno := rawWritev(fd, pieces)
	for errno == syscall.EINTR {
		n, errno = rawWritev(fd, pieces)
	}
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}
