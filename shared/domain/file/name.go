package file

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName = 255 // in bytes; longer names are truncated between code points
	unnamed = "upload"
)

// CleanName returns a file name without path or control characters (docs/contract/media.md#file-reference). Both
// slashes and backslashes separate path elements, because browsers on any system may send a path.
func CleanName(name string) string {
	name = strings.ToValidUTF8(name, "")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		// Unicode format characters could reverse how the name is displayed.
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
