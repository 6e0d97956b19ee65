//go:build unix && !linux

package boottime

import "golang.org/x/sys/unix"

// On macOS, this clock keeps running while the machine sleeps (clock_gettime(3)).
const clockID = unix.CLOCK_MONOTONIC

func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }
