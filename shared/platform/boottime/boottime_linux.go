package boottime

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Unlike Go's CLOCK_MONOTONIC, this clock keeps running while the machine sleeps (clock_gettime(2)).
const clockID = unix.CLOCK_BOOTTIME

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}
