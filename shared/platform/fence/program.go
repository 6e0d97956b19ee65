package fence

import (
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// shown are the files of the system that decoders and their libraries look into:
// how many processors there are, and where the libraries are.
var shown = []string{
	"/dev/zero", "/dev/urandom", "/etc/ld.so.cache",
	"/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems", "/proc/self/status",
	"/sys/devices/system/cpu", "/sys/devices/system/node",
}

// wide are the folders of programs and libraries, for a program of which it is not
// known what it takes.
var wide = []string{
	"/bin", "/usr/bin", "/usr/local/bin", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store",
	"/snap",
}

// libraryForm finds a library in what the dynamic linker tells of a program:
//
//	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f...)
var libraryForm = regexp.MustCompile(`(?m)(/\S+) \(0x[0-9a-f]+\)$`)

// NewProgram finds out what a program takes to run: its libraries, one by one. Of
// a script it is not known, and then the folders of the system's programs and
// libraries are all shown to it.
//
// Errors: that the program is not there; the context's.
func NewProgram(ctx context.Context, path string) (Program, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Program{}, fmt.Errorf("fence: %w", err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Program{}, fmt.Errorf("fence: %w", err)
	}
	program := Program{Path: path, executes: []string{real}, reads: shown}
	if runtime.GOOS != "linux" {
		return program, nil
	}
	linker, dynamic := interpreter(real)
	if linker == "" && !dynamic {
		return program, nil
	}
	program.executes = append(program.executes, linker)
	libraries := dependencies(ctx, real)
	if ctx.Err() != nil {
		return Program{}, ctx.Err()
	}
	if linker == "" || len(libraries) == 0 {
		program.executes = append([]string{real}, wide...)
		libraries = []string{filepath.Join(filepath.Dir(real), "..", "lib")}
	}
	program.reads = append(append([]string{}, shown...), libraries...)
	return program, nil
}

// interpreter returns the dynamic linker of a program, "" where it is not told. A
// static program is not dynamic; whatever is no program of the kernel's is taken
// for dynamic.
func interpreter(path string) (linker string, dynamic bool) {
	file, err := elf.Open(path)
	if err != nil {
		return "", true
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(io.LimitReader(segment.Open(), 4<<10))
		if err != nil {
			return "", true
		}
		return strings.TrimRight(string(name), "\x00"), true
	}
	return "", false
}

// dependencies asks the dynamic linker which libraries a program loads; none where
// the linker cannot tell, as musl's.
func dependencies(ctx context.Context, path string) []string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-version")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LD_TRACE_LOADED_OBJECTS=1"}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var libraries []string
	for _, found := range libraryForm.FindAllSubmatch(out, -1) {
		libraries = append(libraries, string(found[1]))
	}
	return libraries
}
