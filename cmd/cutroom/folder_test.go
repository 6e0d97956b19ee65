package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Files outside the folder do not change.
func TestDataFolderEntriesAreChecked(t *testing.T) {
	for name, kind := range entries {
		link := ""
		if kind == ownFile {
			link = "is a link"
		}
		wrong := "is not a file"
		if kind == anyFolder {
			wrong = "is not a folder"
		}
		put := map[string]struct {
			make func(path, outside string) error
			says string // empty if the server must accept the entry
		}{
			"nothing":           {func(string, string) error { return nil }, ""},
			"a link":            {func(path, outside string) error { return os.Symlink(outside, path) }, link},
			"a link to nothing": {func(path, _ string) error { return os.Symlink("/nowhere/at/all", path) }, "link"},
			"a pipe":            {func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }, wrong},
			"a folder for a file, or a file for a folder": {func(path, _ string) error {
				if kind == anyFolder {
					return os.WriteFile(path, nil, 0o600)
				}
				return os.Mkdir(path, 0o700)
			}, wrong},
		}
		for what, put := range put {
			t.Run(name+" is "+what, func(t *testing.T) {
				data, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
				var err error
				if kind == anyFolder {
					err = os.Mkdir(outside, 0o700)
				} else {
					err = os.WriteFile(outside, []byte("mine"), 0o600)
				}
				if err == nil {
					err = put.make(filepath.Join(data, name), outside)
				}
				if err != nil {
					t.Fatal(err)
				}
				lock, err := lockFolder(data)
				if err == nil {
					lock.release()
				}
				if put.says == "" && err != nil || put.says != "" && (err == nil ||
					!strings.Contains(err.Error(), put.says) || !strings.Contains(err.Error(), filepath.Join(data, name))) {
					t.Errorf("got %v, want %q", err, put.says)
				}
				if kind != anyFolder {
					if content, err := os.ReadFile(outside); err != nil || string(content) != "mine" {
						t.Errorf("the file outside has %q, %v", content, err)
					}
				}
			})
		}
	}
}

// The folder may be a link to a folder on a faster disk.
func TestStartKeepsOtherFilesInScratch(t *testing.T) {
	outside, elsewhere := t.TempDir(), t.TempDir()
	scratch := filepath.Join(t.TempDir(), scratchName)
	mine := []string{
		"job_01KA0000000000000000000000-123", "credentials-45", "thumbnail-6", "picture-61", "cutroom-doctor-7", ".probe-8",
	}
	others := []string{"photos", "job_notes", "thumbnail-of-me", "lost+found", "credentials-45a"}
	for _, name := range append(mine, others...) {
		if err := os.MkdirAll(filepath.Join(outside, name, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mine = append(mine, "thumbnail-9")
	for link, to := range map[string]string{scratch: outside, filepath.Join(outside, "thumbnail-9"): elsewhere} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := emptyScratch(scratch); err != nil {
		t.Fatal(err)
	}
	for _, name := range mine {
		if _, err := os.Lstat(filepath.Join(outside, name)); err == nil {
			t.Errorf("%s still exists", name)
		}
	}
	for _, path := range append(others, filepath.Join("..", filepath.Base(elsewhere), "kept")) {
		if _, err := os.Stat(filepath.Join(outside, path)); err != nil {
			t.Errorf("%s is missing: %v", path, err)
		}
	}
}
