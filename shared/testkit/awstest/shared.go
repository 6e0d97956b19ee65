package awstest

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is a local AWS for all tests of a package. Each test creates its own tables, buckets and queues, whose
// names never clash. Sharing saves time, because starting a local AWS takes as much CPU time as most tests. The
// zero value is ready to use, and its methods are safe for concurrent use.
type Shared struct {
	mu     sync.Mutex
	folder string
	cloud  *Cloud
}

// Main runs the tests, stops the local AWS if a test has started it, and returns the exit code for os.Exit.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cloud == nil {
		return code
	}
	defer os.RemoveAll(s.folder)
	if err := s.cloud.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the local AWS:", err)
		return 1
	}
	return code
}

// Cloud returns the local AWS, which the first call starts. If a test fails, the output so far is logged.
func (s *Shared) Cloud(t T) *Cloud {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cloud == nil {
		python := Tool(t, "python/bin/python")
		folder, err := os.MkdirTemp("", "awstest-")
		if err != nil {
			t.Fatal(err)
		}
		cloud, err := tryStart(python, folder, nil)
		if err != nil {
			os.RemoveAll(folder)
			t.Fatal(err)
		}
		s.folder, s.cloud = folder, cloud
	}
	t.Cleanup(func() { s.cloud.show(t) })
	return s.cloud
}
