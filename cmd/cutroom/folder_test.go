package main

import (
	"os"
	"path/filepath"
	"testing"
)

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
