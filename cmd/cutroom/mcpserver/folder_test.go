package mcpserver

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Another program may create the file between the check and the end of the download.
func TestDraftReplacesOnlyOnRequest(t *testing.T) {
	folder, err := OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	path := filepath.Join(folder.Path(), "made.png")
	keep := func(overwrite bool) error {
		t.Helper()
		made, err := folder.draft(".", rand.Text())
		if err != nil {
			t.Fatal(err)
		}
		defer made.discard()
		if _, err := made.WriteString("result"); err != nil {
			t.Fatal(err)
		}
		return made.keep("made.png", overwrite)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keep(false); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("next to a file that appeared later: %v", err)
	}
	if content, err := os.ReadFile(path); string(content) != "mine" || err != nil {
		t.Errorf("the file is %q, %v", content, err)
	}
	if err := keep(true); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(path); string(content) != "result" || err != nil {
		t.Errorf("the file that is replaced is %q, %v", content, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := keep(false); err != nil {
		t.Error(err)
	}
	// A dangling link also counts as an existing file.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere.png", path); err != nil {
		t.Fatal(err)
	}
	if err := keep(false); err == nil {
		t.Error("the draft was written through a link")
	}
	entries, err := os.ReadDir(folder.Path())
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder contains %v, %v", entries, err)
	}
}
