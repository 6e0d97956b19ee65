package file_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

// Ids sort by creation even within a millisecond, and even if the clock stops or goes back.
func TestIDsSortByCreation(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ids := file.NewIDs(func() time.Time { return now }, rand.Reader)
	last := ""
	for i := range 1000 {
		if i == 500 {
			now = now.Add(-time.Second)
		}
		id, _, err := ids.New()
		if err != nil {
			t.Fatal(err)
		}
		if !file.IsReference(id) {
			t.Fatalf("%q is not a reference", id)
		}
		if id <= last {
			t.Fatalf("%q was created after %q but does not sort after it", id, last)
		}
		last = id
	}
}

func TestCursorIsBoundToAccountAndSecret(t *testing.T) {
	cursors := file.NewCursors([]byte("secret"))
	cursor, err := cursors.Make(t.Context(), "acme", "file_1")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := cursors.Read(t.Context(), "acme", cursor); err != nil || id != "file_1" {
		t.Fatalf("got %q, %v", id, err)
	}
	if strings.Contains(cursor, "file_1") {
		t.Errorf("the cursor %q is not opaque", cursor)
	}
	for name, read := range map[string]func() (string, error){
		"another account":    func() (string, error) { return cursors.Read(t.Context(), "other", cursor) },
		"another secret":     func() (string, error) { return file.NewCursors([]byte("x")).Read(t.Context(), "acme", cursor) },
		"an id":              func() (string, error) { return cursors.Read(t.Context(), "acme", "file_1") },
		"padded":             func() (string, error) { return cursors.Read(t.Context(), "acme", cursor+"=") },
		"a trailing newline": func() (string, error) { return cursors.Read(t.Context(), "acme", cursor+"\n") },
		"an empty seal":      func() (string, error) { return cursors.Read(t.Context(), "acme", "AAAA") },
	} {
		if id, err := read(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %q, %v, want invalid", name, id, err)
		}
	}
	for i := range cursor {
		tampered := cursor[:i] + string(rune('A'+(cursor[i]+1)%26)) + cursor[i+1:]
		if _, err := cursors.Read(t.Context(), "acme", tampered); tampered != cursor && err == nil {
			t.Errorf("the cursor is accepted after a change at %d", i)
		}
	}
}

func TestCursorReportsMissingSecret(t *testing.T) {
	gone := errors.New("no secret")
	cursors := file.NewCursorsFrom(func(context.Context) ([]byte, error) { return nil, gone })
	if _, err := cursors.Make(t.Context(), "acme", "file_1"); !errors.Is(err, gone) {
		t.Errorf("made: %v", err)
	}
	if _, err := cursors.Read(t.Context(), "acme", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"); !errors.Is(err, gone) ||
		fault.Is(err, fault.Invalid) {
		t.Errorf("read: %v", err)
	}
}

// See docs/contract/media.md#file-reference.
func TestCleanNameRemovesPathAndControlCharacters(t *testing.T) {
	for sent, want := range map[string]string{
		"clip.mp4":               "clip.mp4",
		"../../etc/passwd":       "passwd",
		`C:\Users\me\clip.mp4`:   "clip.mp4",
		"a\x00b\nc.mp4":          "abc.mp4",
		"été 🎬.mp4":              "été 🎬.mp4",
		"gpj.\u202Eexe":          "gpj.exe",
		"":                       "upload",
		"..":                     "upload",
		"folder/":                "upload",
		"bad\xffutf8":            "badutf8",
		strings.Repeat("é", 200): strings.Repeat("é", 127),
	} {
		if got := file.CleanName(sent); got != want {
			t.Errorf("%q: got %q, want %q", sent, got, want)
		}
	}
}
