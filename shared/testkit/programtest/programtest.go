// Package programtest builds programs for tests and collects their output.
package programtest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
)

// Folder returns the folder for built programs: the value of TEST_PROGRAMS if it is set, otherwise the given folder.
// Programs that are already up to date in that folder are not linked again.
func Folder(own string) string {
	return cmp.Or(os.Getenv("TEST_PROGRAMS"), own)
}

// Build builds the program of a package, such as "cutroom/cmd/worker", into the caller's folder and returns its
// path. If TEST_PROGRAMS is set, scripts/test.sh has already built the program. Like a release, it is built
// without cgo, because threads of the C library would make the sandbox around programs impossible.
func Build(ctx context.Context, folder, pkg string) (string, error) {
	program := filepath.Join(Folder(folder), path.Base(pkg))
	if Folder("") != "" {
		_, err := os.Stat(program)
		return program, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", program, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}

// Main builds a package's program with Build and stores the program's path in the variable program. It then runs the
// tests and returns the exit code for os.Exit. After the tests it removes the program, unless the program is in
// TEST_PROGRAMS.
func Main(m *testing.M, pkg string, program *string) int {
	folder, err := os.MkdirTemp("", path.Base(pkg)+"-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if *program, err = Build(context.Background(), folder, pkg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Output keeps the bytes written to it. It is safe for concurrent use. The zero value keeps all bytes.
type Output struct {
	// Limit is how many of the last bytes to keep. 0 means all.
	Limit int

	mu      sync.Mutex
	written bytes.Buffer
	grown   chan struct{}
}

// Write keeps the bytes and closes the channel that More returned.
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

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.written.String()
}

// More returns a channel that is closed by the next write.
func (o *Output) More() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown == nil {
		o.grown = make(chan struct{})
	}
	return o.grown
}
