package boottime

import (
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// read reads a clock that, unlike Go's CLOCK_MONOTONIC, keeps running while the machine sleeps (clock_gettime(2)). Like
// httpserver.RawCall, it does not notify Go's scheduler.
func read() (time.Duration, error) {
	var now unix.Timespec
	_, _, errno := syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&now)), 0)
	if errno != 0 {
		return 0, errno
	}
	return time.Duration(now.Nano()), nil
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}
