package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cutroom/shared/adapter/sqlite"
)

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount, make devices and act as another user")
	}
}

func asOther(t *testing.T, do func() error) error {
	t.Helper()
	const other, unchanged = 65534, ^uintptr(0)
	var failed syscall.Errno
	ended := make(chan error)
	go func() {
		// Only this thread changes its user. It stays locked, so it ends with the goroutine.
		runtime.LockOSThread()
		if _, _, failed = unix.RawSyscall(unix.SYS_SETRESUID, unchanged, other, unchanged); failed != 0 {
			ended <- failed
			return
		}
		ended <- do()
	}()
	err := <-ended
	if failed != 0 {
		t.Skip("cannot act as another user: ", err)
	}
	return err
}

func open(t *testing.T, data string) error {
	t.Helper()
	lock, err := lockFolder(data)
	if err != nil {
		return err
	}
	defer lock.release()
	opened, err := openBoth(t.Context(), dataFlag{Data: data}, sqlite.Options{Now: time.Now})
	if err != nil {
		return err
	}
	return opened.close()
}

func entriesOf(t *testing.T, folder string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		all = append(all, path+" "+info.Mode().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The error names the path, and the folder is left unchanged.
func TestDataFolderOfAnotherOwnerIsRejected(t *testing.T) {
	asRoot(t)
	for name, mode := range map[string]os.FileMode{"unreadable": 0o700, "read-only": 0o755, "unlistable": 0o733} {
		t.Run(name, func(t *testing.T) {
			parent, err := os.MkdirTemp("", "folder")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(parent) })
			data := filepath.Join(parent, "data")
			if err := errors.Join(os.Chmod(parent, 0o755), os.Mkdir(data, 0o700), open(t, data)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(data, mode); err != nil {
				t.Fatal(err)
			}
			before := entriesOf(t, data)
			err = asOther(t, func() error {
				lock, err := lockFolder(data)
				if err == nil {
					lock.release()
				}
				return err
			})
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), data) {
				t.Errorf("got %v, want a permission error for %s", err, data)
			}
			if after := entriesOf(t, data); !slices.Equal(before, after) {
				t.Errorf("it has %q, and had %q", after, before)
			}
		})
	}
}

func TestRootServesFolderOfAnotherOwner(t *testing.T) {
	asRoot(t)
	data := t.TempDir()
	if err := errors.Join(os.Chown(data, 65534, 65534), open(t, data)); err != nil {
		t.Error(err)
	}
}

// A mount below the blobs folder is rejected, because no file can be renamed into it, even on the same file system.
func TestMountBelowBlobsIsRejected(t *testing.T) {
	asRoot(t)
	for _, name := range []string{"files", "jobs", "batches", "thumbnails", ".tmp", ".unknown"} {
		data, other := t.TempDir(), t.TempDir()
		path := filepath.Join(data, "blobs", name)
		kept := filepath.Join(other, "1")
		if err := errors.Join(os.MkdirAll(path, 0o700), os.WriteFile(kept, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(other, path, "", unix.MS_BIND, ""); err != nil {
			t.Skip("cannot mount: ", err)
		}
		err := open(t, data)
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		if err == nil || !strings.Contains(err.Error(), path+" is a mount point") {
			t.Errorf("got %v, want an error about the mount %s", err, path)
		}
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("a file of the mount is missing: %v", err)
		}
		if err := open(t, data); err != nil {
			t.Errorf("without the mount: %v", err)
		}
	}
}

func TestBlobFolderMayBeAMount(t *testing.T) {
	asRoot(t)
	data := t.TempDir()
	path := filepath.Join(data, "blobs")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(t.TempDir(), path, "", unix.MS_BIND, ""); err != nil {
		t.Skip("cannot mount: ", err)
	}
	err := open(t, data)
	if err := errors.Join(err, unix.Unmount(path, unix.MNT_DETACH)); err != nil {
		t.Error(err)
	}
}
