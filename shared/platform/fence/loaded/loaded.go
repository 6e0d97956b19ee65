// Package loaded finds out which libraries a process has loaded. It is apart from package
// fence because helpers need it, and not what that imports.
package loaded

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// Libraries are those of a process, with what it takes to load them: the fence.Plan of
// another run of the same program has to allow it.
type Libraries struct {
	// Files are the libraries. None on systems other than Linux.
	Files []string
	// Space is the largest address space so far, in bytes; 0 if the system does not tell.
	Space int64
}

// Now returns what this process has taken so far.
func Now() Libraries {
	var l Libraries
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return l // not Linux
	}
	self, _ := os.Readlink("/proc/self/exe")
	for line := range strings.Lines(string(maps)) {
		at := strings.IndexByte(line, '/')
		if at < 0 {
			continue
		}
		path := strings.TrimSpace(line[at:])
		if path != self && strings.Contains(path, ".so") && !slices.Contains(l.Files, path) {
			l.Files = append(l.Files, path)
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if kilobytes, ok := strings.CutPrefix(line, "VmPeak:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kilobytes), " kB"), 10, 64)
			l.Space = n << 10
		}
	}
	return l
}

// Find returns the path of the library whose file name begins so, "" for none.
func (l Libraries) Find(name string) string {
	for _, path := range l.Files {
		// Package path/filepath would be initialized after much else.
		if strings.HasPrefix(path[strings.LastIndexByte(path, '/')+1:], name) {
			return path
		}
	}
	return ""
}
