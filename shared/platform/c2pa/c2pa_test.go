package c2pa_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/platform/c2pa"
	"cutroom/shared/platform/sandbox"
	"cutroom/shared/testkit/c2patest"
)

func TestErrorNamesInvalidLibrary(t *testing.T) {
	t.Parallel()
	box, err := sandbox.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/nonexistent/libc2pa_c.so": "cannot load /nonexistent/libc2pa_c.so", "/usr/bin/env": "cannot load",
	} {
		if _, err := c2pa.Find(t.Context(), box, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestReadDistinguishesMissingCredentials(t *testing.T) {
	t.Parallel()
	library := c2patest.Library(t)
	if library.String() == "" {
		t.Error("the library has no version")
	}
	for content, none := range map[string]bool{"\x89PNG\r\n\x1a\n": false, "": false} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := library.Read(t.Context(), file, "image/png", ""); err == nil || errors.Is(err, c2pa.ErrNone) != none {
			t.Errorf("%q: %v", content, err)
		}
	}
}
