//go:build unix && !linux

package boottime

import "golang.org/x/sys/unix"

// clockID counts the time of sleep too on macOS (clock_gettime(3)).
const clockID = unix.CLOCK_MONOTONIC

func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }
