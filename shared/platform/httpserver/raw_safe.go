//go:build race || !linux

package httpserver

import "syscall"

// rawCall uses package syscall. It tells the race detector that a read follows a write.
func rawCall(call, fd uintptr, p []byte) (int, error) {
	if call == syscall.SYS_READ {
		return syscall.Read(int(fd), p)
	}
	return syscall.Write(int(fd), p)
}
