package fence

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Loaded is what a process takes to load its libraries: a [Plan] of another run of the
// same program has to allow it.
type Loaded struct {
	// Files are the libraries. None on systems other than Linux.
	Files []string
	// Space is the largest address space so far, in bytes; 0 if the system does not tell.
	Space int64
}

// LoadedNow returns what this process has taken so far.
func LoadedNow() Loaded {
	var l Loaded
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
func (l Loaded) Find(name string) string {
	for _, path := range l.Files {
		if strings.HasPrefix(filepath.Base(path), name) {
			return path
		}
	}
	return ""
}
