package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"cutroom/shared/platform/durable"
)

func TestWriteReplacesFileAtomically(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept")
	wrong := errors.New("wrong")
	for _, c := range []struct {
		content string
		broken  bool
		check   error
		want    string
	}{
		{content: "one", want: "one"},
		{content: "two", want: "two"},
		{content: "half", broken: true, want: "two"},
		{content: "bad", check: wrong, want: "two"},
		{content: "", want: ""},
	} {
		content := strings.NewReader(c.content)
		failing := iotest.TimeoutReader(iotest.OneByteReader(content))
		var err error
		check := func(part string) error {
			if got, err := os.ReadFile(part); err != nil || string(got) != c.content {
				t.Errorf("checked is %q, %v", got, err)
			}
			return c.check
		}
		if c.broken {
			err = durable.Write(path, failing, check)
		} else {
			err = durable.Write(path, content, check)
		}
		if wrote := err == nil; wrote != (!c.broken && c.check == nil) {
			t.Errorf("writing %q: %v", c.content, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.want {
			t.Errorf("after %q the file has %q, %v", c.content, got, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	if left, err := filepath.Glob(path + "?*"); err != nil || len(left) > 0 {
		t.Errorf("%v and %v remain", left, err)
	}
}
