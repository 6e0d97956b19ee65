package diskblob_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/testkit/disktest"
)

func TestAvailableSpaceExcludesReserve(t *testing.T) {
	store, err := diskblob.Open(filepath.Join(disktest.Small(t, "size=10m"), "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	for reserve, want := range map[int64]int64{1: 10<<20 - 1, 4 << 20: 6 << 20, 0: 9 << 20, 20 << 20: -10 << 20} {
		got, err := store.Available(reserve)
		if err != nil || got > want || got < want-64<<10 {
			t.Errorf("with a reserve of %d, %d bytes are available (%v), want slightly less than %d", reserve, got, err, want)
		}
	}
	scarce, err := diskblob.Open(filepath.Join(disktest.Small(t, "size=10m,nr_inodes=100"), "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	available := int64(0)
	for i := 0; i < 100 && available >= 0; i++ {
		if available, err = scarce.Available(1); err == nil && available >= 0 {
			_, err = scarce.Put(t.Context(), fmt.Sprint("blob", i), strings.NewReader("x"))
		}
		if err != nil {
			t.Fatalf("at blob %d: %v", i, err)
		}
	}
	if available >= 0 {
		t.Error("a disk almost without inodes has space")
	}
	for size, want := range map[int64]int64{10 << 20: 1 << 20, 20 << 30: 1 << 30, 1 << 40: 1 << 40 / 50} {
		if got := diskblob.DefaultReserve(size); got != want {
			t.Errorf("the reserve of a disk of %d bytes is %d, want %d", size, got, want)
		}
	}
}
