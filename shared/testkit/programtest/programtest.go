// Package programtest holds what tests of programs share: how they are built, and
// what they write.
package programtest

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
)

// Folder returns the folder that programs are built into: the one that the variable
// TEST_PROGRAMS names, else the caller's own. Go does not link a program anew that
// lies there as it would become, so that many packages that test it link it once.
func Folder(own string) string {
	return cmp.Or(os.Getenv("TEST_PROGRAMS"), own)
}

// Main builds the program of a package, such as "cutroom/cmd/worker", runs the
// tests, and returns the exit code for os.Exit. Program is then the program's path;
// it is gone after the tests, unless Folder keeps it.
func Main(m *testing.M, pkg string, program *string) int {
	folder, err := os.MkdirTemp("", path.Base(pkg)+"-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	*program = filepath.Join(Folder(folder), path.Base(pkg))
	if out, err := exec.Command("go", "build", "-o", *program, pkg).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, out)
		return 1
	}
	return m.Run()
}

// Output keeps what is written to it, and may be read meanwhile. The zero Output
// is ready and keeps everything.
type Output struct {
	// Limit bounds what is kept, in bytes, to the end of it; 0 does not.
	Limit int

	mu      sync.Mutex
	written bytes.Buffer
	grown   chan struct{}
}

// Write keeps the bytes, and wakes who waits for More.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown != nil {
		close(o.grown)
		o.grown = nil
	}
	o.written.Write(p)
	if over := o.written.Len() - o.Limit; o.Limit > 0 && over > 0 {
		o.written.Next(over)
	}
	return len(p), nil
}

// String returns what was written.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.written.String()
}

// More returns a channel that the next write closes.
func (o *Output) More() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown == nil {
		o.grown = make(chan struct{})
	}
	return o.grown
}
