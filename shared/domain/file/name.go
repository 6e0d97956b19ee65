package file

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxName is the maximum length of a file's name in bytes. Longer names are cut between code
	// points.
	maxName = 255
	unnamed = "upload"
)

// CleanName returns a client's file name without its path and control characters
// (docs/contract/media.md#file-reference). Slashes and backslashes are both separators, because
// browsers on any system may send a path.
func CleanName(name string) string {
	name = strings.ToValidUTF8(name, "")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		// Format characters could reverse the name on a screen.
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(name)
	for len(name) > maxName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name == "" || name == "." || name == ".." {
		return unnamed
	}
	return name
}
