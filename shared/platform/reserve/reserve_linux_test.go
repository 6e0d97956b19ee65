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

func TestReserve(t *testing.T) {
	disk := disktest.Small(t, "size=4m")
	path := filepath.Join(disk, "reserve")
	r := reserve.Open(path, 1<<20)
	if !r.Held() {
		t.Fatal("there is room, and it is not held")
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
		t.Fatal("opened again it is not held")
	}
	if err := os.WriteFile(filepath.Join(disk, "more"), make([]byte, 4096), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if !r.ReleaseIfFull() || r.Held() || r.Release() {
		t.Error("it was not given away once")
	}
	if err := os.WriteFile(filepath.Join(disk, "more"), make([]byte, 512<<10), 0o600); err != nil {
		t.Errorf("after a release there is no space: %v", err)
	}
	if r.Restore() {
		t.Error("it was taken again from a full disk")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if !r.Restore() || r.ReleaseIfFull() {
		t.Error("with room again it is not held")
	}
}
