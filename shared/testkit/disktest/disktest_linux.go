// Package disktest mounts small disks for tests.
package disktest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Small mounts a file system in memory until the test ends, and returns its folder. The options are tmpfs
// options, such as "size=2m". The test fails if mounting is not allowed. `make test` ensures that it is allowed.
func Small(t testing.TB, options string) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, options); err != nil {
		t.Fatalf("cannot mount a small file system: %v. This test needs root, or its own user namespace, which make "+
			"test creates.", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return folder
}
