package sandbox

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
	"sync"
	"time"
)

// System files that decoders and their libraries read, for example to find the number of processors.
var shown = []string{
	"/dev/zero", "/dev/urandom", "/etc/ld.so.cache",
	"/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems", "/proc/self/status",
	"/sys/devices/system/cpu", "/sys/devices/system/node",
}

// wide lists the folders that a program with unknown requirements may read.
var wide = []string{
	"/bin", "/usr/bin", "/usr/local/bin", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store",
	"/snap",
}

// libraryForm matches a library in the dynamic linker's output for a program. It is compiled on
// first use, because few functions need it.
//
//	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f...)
var libraryForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)(/\S+) \(0x[0-9a-f]+\)$`) })

// NewProgram determines which libraries a program needs. A script may read all folders that contain
// the system's programs and libraries. NewProgram fails if the program does not exist.
func NewProgram(ctx context.Context, path string) (Program, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Program{}, fmt.Errorf("sandbox: %w", err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Program{}, fmt.Errorf("sandbox: %w", err)
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

// WithPlugins lets the program read all of the system's libraries, because it loads some by name.
func (p Program) WithPlugins() Program {
	p.reads = append(append([]string{}, p.reads...), wide...)
	return p
}

// interpreter returns a program's dynamic linker, or "" if unknown. dynamic is false for static
// programs and true for files that are not ELF programs.
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

// dependencies returns nil if the dynamic linker cannot list a program's libraries (musl's, for example).
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
	for _, found := range libraryForm().FindAllSubmatch(out, -1) {
		libraries = append(libraries, string(found[1]))
	}
	return libraries
}

// Self returns this program, for running it in the sandbox. It works even if the program's file has
// been replaced since.
func Self(ctx context.Context) (Program, error) {
	path, err := ownProgram()
	if err != nil {
		return Program{}, fmt.Errorf("sandbox: %w", err)
	}
	program, err := NewProgram(ctx, path)
	// The launcher is this program, and it opens its own file by this name.
	program.executes = append(program.executes, path)
	return program, err
}
