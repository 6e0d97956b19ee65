package boottime

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// clockID counts the time of sleep too, other than CLOCK_MONOTONIC, which Go's
// own monotonic times are of (clock_gettime(2)).
const clockID = unix.CLOCK_BOOTTIME

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}
