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
	"sync"
	"time"
)

// shown are the files of the system that decoders and their libraries read: how
// many processors there are, and where the libraries are.
var shown = []string{
	"/dev/zero", "/dev/urandom", "/etc/ld.so.cache",
	"/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems", "/proc/self/status",
	"/sys/devices/system/cpu", "/sys/devices/system/node",
}

// wide are the folders of programs and libraries, for a program whose needs are
// not known.
var wide = []string{
	"/bin", "/usr/bin", "/usr/local/bin", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store",
	"/snap",
}

// libraryForm matches a library in the dynamic linker's output for a program. It is compiled
// when it is first used, because a function starts long before that.
//
//	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f...)
var libraryForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)(/\S+) \(0x[0-9a-f]+\)$`) })

// NewProgram finds out what a program needs to run: its libraries, one by one.
// The needs of a script are not known, so it may read all folders of the
// system's programs and libraries.
//
// Errors: the program does not exist; the context's.
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

// interpreter returns the dynamic linker of a program, "" if it is not known. A
// static program is not dynamic; a file that is not an ELF program is taken to
// be dynamic.
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

// dependencies returns the libraries that a program loads, as the dynamic
// linker lists them; none if the linker cannot list them, like that of musl.
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

// Self returns this program, to be run fenced under another name or with other
// arguments, even after another replaced its file.
//
// Errors: those of NewProgram.
func Self(ctx context.Context) (Program, error) {
	path, err := ownProgram()
	if err != nil {
		return Program{}, fmt.Errorf("fence: %w", err)
	}
	program, err := NewProgram(ctx, path)
	// The launcher is this program, and opens itself by this name.
	program.executes = append(program.executes, path)
	return program, err
}
