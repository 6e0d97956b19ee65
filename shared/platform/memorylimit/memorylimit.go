// Package memorylimit limits the memory of Go's heap.
package memorylimit

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"runtime/debug"
	"strings"
)

// Set makes Go collect garbage more often once the program uses 70 % of the machine's memory. Otherwise, the heap
// could grow to twice the memory in use. The variable GOMEMLIMIT takes precedence.
func Set() {
	if machine := OfMachine(); machine > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(machine / 10 * 7)
	}
}

// OfMachine returns the memory of the machine, container or systemd unit, or 0 if unknown.
func OfMachine() (least int64) {
	read := func(file, form string, unit int64) {
		text, _ := os.ReadFile(file)
		var units int64
		if _, err := fmt.Sscanf(string(text), form, &units); err == nil {
			least = min(cmp.Or(least, units*unit), units*unit)
		}
	}
	read("/proc/meminfo", "MemTotal: %d kB", 1<<10)
	read("/sys/fs/cgroup/memory/memory.limit_in_bytes", "%d", 1) // a container's limit with control groups of version 1
	group, _ := os.ReadFile("/proc/self/cgroup")
	_, folder, _ := strings.Cut(string(group), "0::")
	for folder = path.Clean("/" + strings.TrimSpace(folder)); ; folder = path.Dir(folder) {
		read("/sys/fs/cgroup"+folder+"/memory.max", "%d", 1)
		if folder == "/" {
			return least
		}
	}
}
