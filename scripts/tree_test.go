package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// largestFile is the maximum size of a file in the repository, in bytes. The largest files are test
// media; a built program is far larger.
const largestFile = 1 << 20

// A built program, if committed, would be in every clone forever.
func TestRepositoryHasNoBuiltProgram(t *testing.T) {
	const root = ".."
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("list the files: %v", err)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if len(files) < 100 {
		t.Fatalf("only %d files are listed", len(files))
	}
	for _, name := range files {
		info, err := os.Lstat(filepath.Join(root, name))
		if err == nil && info.Size() > largestFile {
			t.Errorf("%s has %d bytes, more than %d", name, info.Size(), largestFile)
		}
	}
}
