// Package c2patest finds the library libc2pa_c for tests, and reads Content Credentials as a
// client would, with the library's own Python package.
package c2patest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"cutroom/shared/platform/c2pa"
	"cutroom/shared/platform/sandbox"
)

func Path(t testing.TB) string {
	t.Helper()
	path, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func Find() (string, error) { return tool("c2pa/libc2pa_c.so") }

func tool(name string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("the test runs outside the module")
		}
		folder = parent
	}
	path := filepath.Join(folder, ".tools", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: scripts/install-test-tools.sh installs it", err)
	}
	return path, nil
}

var found struct {
	once    sync.Once
	library *c2pa.Library
	err     error
}

func Library(t testing.TB) *c2pa.Library {
	t.Helper()
	path := Path(t)
	found.once.Do(func() {
		var box *sandbox.Sandbox
		if box, found.err = sandbox.New(context.Background()); found.err == nil {
			found.library, found.err = c2pa.Find(context.Background(), box, path)
		}
	})
	if found.err != nil {
		t.Fatal(found.err)
	}
	return found.library
}

// read is a Python program that prints the report about a file.
const read = `
import sys, c2pa
anchors = open(sys.argv[3]).read() if len(sys.argv) > 3 else None
settings = {"verify": {"remote_manifest_fetch": False}}
if anchors:
    settings["trust"] = {"user_anchors": anchors}
with open(sys.argv[1], "rb") as file:
    print(c2pa.Reader(sys.argv[2], file, context=c2pa.Context(settings=c2pa.Settings.from_dict(settings))).json())
`

type Report struct {
	State     string                     `json:"validation_state"`
	Active    string                     `json:"active_manifest"`
	Manifests map[string]json.RawMessage `json:"manifests"`
}

// Read reads a file's credentials with the Python package. It trusts the certificates in the PEM
// file anchors, unless anchors is "".
func Read(t testing.TB, path, mime, anchors string) Report {
	t.Helper()
	arguments := []string{"-c", read, path, mime}
	if anchors != "" {
		arguments = append(arguments, anchors)
	}
	python, err := tool("c2papython/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, arguments...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("read %s with the Python package: %v", path, err)
	}
	var report Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	return report
}
