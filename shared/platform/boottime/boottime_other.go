//go:build unix && !linux

package boottime

import "golang.org/x/sys/unix"

// clockID includes the time that the machine sleeps on macOS (clock_gettime(3)).
const clockID = unix.CLOCK_MONOTONIC

func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }
