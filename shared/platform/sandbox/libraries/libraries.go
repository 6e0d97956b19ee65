// Package libraries is for helpers: processes of this program that load a system library. It does not have package
// sandbox's imports.
package libraries

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Found describes a library and the limits of a sandbox.Plan for a helper that loads it. A search runs in a separate
// process, which writes the Found to standard output as JSON.
type Found struct {
	Path, Version string
	// Files lists all libraries of the process.
	Files []string
	// Space is the peak address space in bytes, or 0 if unknown.
	Space int64
	// Problem is why the library cannot be used, or "".
	Problem string
}

// Loaded describes the library that this process has loaded from the path. Its file name starts with name.
func Loaded(path, version, name string) Found {
	f := Found{Path: path, Version: version}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return f // not on Linux
	}
	self, _ := os.Readlink("/proc/self/exe")
	for line := range strings.Lines(string(maps)) {
		at := strings.IndexByte(line, '/')
		if at < 0 {
			continue
		}
		file := strings.TrimSpace(line[at:])
		if file == self || !strings.Contains(file, ".so") || slices.Contains(f.Files, file) {
			continue
		}
		f.Files = append(f.Files, file)
		// Do not use path/filepath, which would be initialized too late.
		if strings.HasPrefix(file[strings.LastIndexByte(file, '/')+1:], name) {
			f.Path = file
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if kilobytes, ok := strings.CutPrefix(line, "VmPeak:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kilobytes), " kB"), 10, 64)
			f.Space = n << 10
		}
	}
	return f
}

// Memory returns the limit of the address space for a helper whose work takes the given number of bytes.
func (f Found) Memory(work int64) int64 {
	if f.Space == 0 {
		return 1 << 62
	}
	return f.Space + work
}

// Exit ends a helper. name begins its error message.
func Exit(name string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}
