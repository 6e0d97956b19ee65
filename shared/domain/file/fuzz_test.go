package file_test

import (
	"encoding/base64"
	"testing"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
)

func FuzzCursor(f *testing.F) {
	cursors := file.NewCursors([]byte("secret"))
	cursorOf := func(account, id string) string {
		cursor, err := cursors.Make(f.Context(), account, id)
		if err != nil {
			f.Fatal(err)
		}
		return cursor
	}
	made := cursorOf("acme", "file_1")
	for _, seed := range []string{
		"", "A", "file_1", made, made + "=", made + "\n", made[:len(made)-1], "A" + made[1:], cursorOf("other", "file_1"),
		cursorOf("acme", ""),
		base64.RawURLEncoding.EncodeToString(make([]byte, 16)),
		base64.StdEncoding.EncodeToString([]byte("a longer text than a seal")),
	} {
		f.Add("acme", seed)
		f.Add("other", seed)
	}
	f.Fuzz(func(t *testing.T, account, cursor string) {
		id, err := cursors.Read(t.Context(), account, cursor)
		again, _ := cursors.Make(t.Context(), account, id)
		switch {
		case err == nil && (id == "" || again != cursor):
			t.Errorf("%q of %q was read as %q, which has another cursor", cursor, account, id)
		case err != nil && (!fault.Is(err, fault.Invalid) || id != ""):
			t.Errorf("%q of %q: %q, %v", cursor, account, id, err)
		}
	})
}

// Cleaning a cleaned name changes nothing.
func FuzzCleanName(f *testing.F) {
	for _, seed := range []string{"", ".", "..", "/", `\`, "a/b", `C:\a`, "a\x00b", "\xff", "\u202ea", " a ", "a\u2028b",
		"été", "a/ ", "a\u0085"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		name := file.CleanName(sent)
		if name == "" || name == "." || name == ".." || len(name) > 255 || file.CleanName(name) != name {
			t.Errorf("%q is cleaned to %q", sent, name)
		}
	})
}
