package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Deleting the lock file, which may look stale, must not admit a second server.
func TestDataFolderHasOneServer(t *testing.T) {
	folder := t.TempDir()
	first, err := lockFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	rejects := func(says string) {
		t.Helper()
		if second, err := lockFolder(folder); err == nil {
			second.release()
			t.Errorf("%s: a second server has the folder", says)
		} else if !strings.Contains(err.Error(), "in use by another server") {
			t.Errorf("%s: %v", says, err)
		}
	}
	rejects("immediately")
	if err := os.Remove(filepath.Join(folder, "lock")); err != nil {
		t.Fatal(err)
	}
	rejects("without the file")
	rejects("with the file that a rejected server has made")
	first.release()
	second, err := lockFolder(folder)
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	second.release()
}

// A folder that links to a running server's database or blobs is rejected, even if that server
// created them after it took its lock.
func TestLinkedEntriesHaveOneServer(t *testing.T) {
	first, elsewhere := t.TempDir(), t.TempDir()
	held, err := lockFolder(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(first, "cutroom.db"), nil, 0o600),
		os.Mkdir(filepath.Join(first, "blobs"), 0o700), os.Mkdir(filepath.Join(elsewhere, "blobs"), 0o700),
		held.lockEntries(first)); err != nil {
		t.Fatal(err)
	}
	linked := func(name, to string) error {
		t.Helper()
		second := t.TempDir()
		if err := os.Symlink(to, filepath.Join(second, name)); err != nil {
			t.Fatal(err)
		}
		lock, err := lockFolder(second)
		if err == nil {
			lock.release()
		}
		return err
	}
	for name, locked := range map[string]string{"cutroom.db": first, "blobs": filepath.Join(first, "blobs")} {
		err := linked(name, filepath.Join(first, name))
		if err == nil || !strings.Contains(err.Error(), locked+" is in use by another server") {
			t.Errorf("%s: got %v, want that %s is in use", name, err, locked)
		}
	}
	if err := linked("blobs", filepath.Join(elsewhere, "blobs")); err != nil {
		t.Errorf("unused blobs: %v", err)
	}
	held.release()
	for _, name := range []string{"cutroom.db", "blobs"} {
		if err := linked(name, filepath.Join(first, name)); err != nil {
			t.Errorf("%s, after the first server: %v", name, err)
		}
	}
	if err := os.Link(filepath.Join(first, "cutroom.db"), filepath.Join(elsewhere, "cutroom.db")); err != nil {
		t.Fatal(err)
	}
	if lock, err := lockFolder(elsewhere); err == nil {
		lock.release()
		t.Error("a database with two names was accepted")
	} else if !strings.Contains(err.Error(), filepath.Join(elsewhere, "cutroom.db")+" has hard links") {
		t.Error(err)
	}
}
