package diskblob_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/disktest"
)

func TestFullDiskFailsOnlyThePut(t *testing.T) {
	root := disktest.Small(t, "size=2m")
	store := openAt(t, root)
	put(t, store, "kept", "bytes")
	for _, size := range []int64{3 << 20, 100 << 20} {
		_, err := store.Put(t.Context(), "jobs/a/data", zeros(size))
		if !fault.Is(err, fault.StorageFull) {
			t.Fatalf("put of %d bytes: error %v, want StorageFull", size, err)
		}
		var refusal *fault.Error
		if !errors.As(err, &refusal) || strings.Contains(refusal.Message, root) || refusal.RetryAfter == 0 {
			t.Errorf("the message is not for a caller, or lacks a time to retry: %v", err)
		}
		if left := leftovers(t, root); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if _, err := store.Head(t.Context(), "jobs/a/data"); !fault.Is(err, fault.NotFound) {
			t.Errorf("head: error %v, want not found", err)
		}
	}
	for range 3 {
		if _, err := store.Put(t.Context(), "jobs/a/data", zeros(1<<20)); err != nil {
			t.Fatalf("put of a blob that fits: %v", err)
		}
		if err := store.Delete(t.Context(), "jobs/a/data"); err != nil {
			t.Fatal(err)
		}
	}
	info, err := store.Head(t.Context(), "kept")
	if err != nil || info.Size != 5 {
		t.Errorf("head of the earlier blob: %+v, %v", info, err)
	}
}

func TestFullDiskStopsUploadEarly(t *testing.T) {
	store := openAt(t, disktest.Small(t, "size=2m"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := store.Put(ctx, "a", zeroReader{}); !fault.Is(err, fault.StorageFull) {
		t.Errorf("error %v, want StorageFull", err)
	}
}

// A disk may run out of inodes before it runs out of bytes.
func TestDiskWithoutInodesIsFull(t *testing.T) {
	root := disktest.Small(t, "size=2m,nr_inodes=6")
	store := openAt(t, root) // uses two inodes: the root and its .tmp
	put(t, store, "a", "bytes")
	if err := store.Copy(t.Context(), "a", "x/y/z/copy"); !fault.Is(err, fault.StorageFull) {
		t.Errorf("copy: error %v, want StorageFull", err)
	}
	if _, err := store.Put(t.Context(), "x/y/z/w/data", bytes.NewReader([]byte("bytes"))); !fault.Is(err,
		fault.StorageFull) {
		t.Errorf("put: error %v, want StorageFull", err)
	}
	if left := leftovers(t, root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	put(t, store, "b", "bytes")
}
