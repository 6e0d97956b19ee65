// Package ascii checks the characters of names and secrets. Unlike regular expressions, its checks
// need no compilation at startup.
package ascii

import "strings"

// Only reports whether text is non-empty and contains only A-Z, a-z, 0-9 and the given additional bytes.
func Only(text, more string) bool {
	for i := range len(text) {
		if !IsAlphanumeric(text[i]) && strings.IndexByte(more, text[i]) < 0 {
			return false
		}
	}
	return text != ""
}

func IsAlphanumeric(b byte) bool { return 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' || IsDigit(b) }

func IsDigit(b byte) bool { return '0' <= b && b <= '9' }
