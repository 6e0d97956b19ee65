package diskblob_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/adapter/diskblob"
	"cutroom/shared/domain/blob/blobtest"
	"cutroom/shared/domain/fault"
)

func open(t *testing.T) (*diskblob.Store, string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "data", "blobs")
	return openAt(t, root), root
}

func openAt(t *testing.T, root string) *diskblob.Store {
	t.Helper()
	store, err := diskblob.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestStoreConforms(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blobtest.Harness {
		store, root := open(t)
		return blobtest.Harness{Store: store, Leftovers: func(t *testing.T) []string { return leftovers(t, root) }}
	})
}

func leftovers(t *testing.T, root string) []string {
	t.Helper()
	var left []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case !entry.IsDir():
			if filepath.Dir(name) == ".tmp" {
				left = append(left, name)
			}
		case name != ".tmp":
			children, err := os.ReadDir(path)
			if err == nil && len(children) == 0 {
				left = append(left, name)
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestPipeIsNotABlob(t *testing.T) {
	root := t.TempDir()
	store := openAt(t, root)
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), "pipe", 0, -1); !fault.Is(err, fault.NotFound) {
		t.Errorf("the pipe was opened: %v", err)
	}
}

func TestPipeIsRejectedAsMark(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, ".mark")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := diskblob.ReadMark(root)
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want an error with %s", err, path)
		}
	case <-time.After(time.Minute):
		t.Error("opening waits for the pipe")
	}
}

// Open deletes temporary files that a crash left behind. Through a link, it could delete other programs' files.
func TestRootMustNotContainLinks(t *testing.T) {
	for _, name := range []string{"jobs", ".tmp", ".unknown", ".mark"} {
		root, outside := t.TempDir(), t.TempDir()
		link := filepath.Join(root, name)
		if err := errors.Join(os.Mkdir(filepath.Join(outside, "mine"), 0o700), os.Symlink(outside, link)); err != nil {
			t.Fatal(err)
		}
		if _, err := diskblob.Open(root); err == nil || !strings.Contains(err.Error(), link+" is a link") {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(outside, "mine")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	outside := t.TempDir()
	for _, name := range []string{"7", "notes"} {
		if err := os.MkdirAll(filepath.Join(outside, ".tmp", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(t.TempDir(), "blobs")
	if err := os.Symlink(outside, root); err != nil {
		t.Fatal(err)
	}
	if _, err := diskblob.Open(root); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(outside, ".tmp"))
	if err != nil || len(left) != 1 || left[0].Name() != "notes" {
		t.Errorf("remaining: %v, %v", left, err)
	}
}
