package boottime

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// clockID includes the time that the machine sleeps, unlike CLOCK_MONOTONIC, which Go's
// monotonic times use (clock_gettime(2)).
const clockID = unix.CLOCK_BOOTTIME

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}
