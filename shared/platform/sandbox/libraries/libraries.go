// Package libraries lists a process's loaded libraries, without package sandbox's imports.
package libraries

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// Loaded describes a process's libraries and address space. A sandbox.Plan must allow them for the same program.
type Loaded struct {
	Files []string
	// Space is the peak address space in bytes, or 0 if unknown.
	Space int64
}

func Now() Loaded {
	var l Loaded
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return l // not on Linux
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

// Find returns the path of the library whose file name starts with name, or "".
func (l Loaded) Find(name string) string {
	for _, path := range l.Files {
		// Do not use path/filepath, which would be initialized too late.
		if strings.HasPrefix(path[strings.LastIndexByte(path, '/')+1:], name) {
			return path
		}
	}
	return ""
}
