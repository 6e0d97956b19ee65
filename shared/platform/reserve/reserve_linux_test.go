package reserve_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"cutroom/shared/platform/reserve"
	"cutroom/shared/testkit/disktest"
)

func TestReserveHoldsAndReleasesSpace(t *testing.T) {
	disk := disktest.Small(t, "size=4m")
	path := filepath.Join(disk, "reserve")
	r := reserve.Open(path, 1<<20)
	if !r.Held() {
		t.Fatal("the disk has space, but the reserve is not held")
	}
	filler := filepath.Join(disk, "filler")
	fill := func() {
		t.Helper()
		if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	fill()
	if r = reserve.Open(path, 1<<20); !r.Held() {
		t.Fatal("after reopening, the reserve is not held")
	}
	if err := os.WriteFile(filepath.Join(disk, "more"), make([]byte, 4096), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if !r.ReleaseIfFull() || r.Held() || r.Release() {
		t.Error("the reserve was not released exactly once")
	}
	if err := os.WriteFile(filepath.Join(disk, "more"), make([]byte, 512<<10), 0o600); err != nil {
		t.Errorf("after the release there is no space: %v", err)
	}
	if r.Restore() {
		t.Error("the reserve was restored on a full disk")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if !r.Restore() || r.ReleaseIfFull() {
		t.Error("with free space, the reserve is not held")
	}
}
