package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A data folder has one server, even if somebody deletes the lock file, which looks left
// over.
func TestOneServerForAFolder(t *testing.T) {
	folder := t.TempDir()
	first, err := lockFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(says string) {
		t.Helper()
		if second, err := lockFolder(folder); err == nil {
			second.release()
			t.Errorf("%s: a second server has the folder", says)
		} else if !strings.Contains(err.Error(), "in use by another server") {
			t.Errorf("%s: %v", says, err)
		}
	}
	refused("at once")
	if err := os.Remove(filepath.Join(folder, "lock")); err != nil {
		t.Fatal(err)
	}
	refused("without the file")
	refused("with the file that a refused server has made")
	first.release()
	second, err := lockFolder(folder)
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	second.release()
}
