// Package programtest builds programs for tests and collects their output.
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

// Folder returns the folder that programs are built into: that of the variable
// TEST_PROGRAMS, or else the caller's own. Go does not link a program again that is
// already there and up to date, so packages that share the folder link each program
// once.
func Folder(own string) string {
	return cmp.Or(os.Getenv("TEST_PROGRAMS"), own)
}

// Main builds the program of a package, such as "cutroom/cmd/worker", runs the
// tests, and returns the exit code for os.Exit. It sets program to the path, which
// is removed after the tests unless it is in TEST_PROGRAMS.
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

// Output keeps what is written to it and may be read at the same time. The zero
// Output keeps everything.
type Output struct {
	// Limit is how many bytes are kept, the last ones; 0 keeps all.
	Limit int

	mu      sync.Mutex
	written bytes.Buffer
	grown   chan struct{}
}

// Write keeps the bytes and closes the channel of More.
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

// String returns what is kept.
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
