//go:build unix && !linux

package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// read reads a clock that keeps running while a Mac sleeps (clock_gettime(3)).
func read() (time.Duration, error) {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return time.Duration(now.Nano()), err
}

func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }
