// Package ascii tells of which characters a name or a secret consists. Unlike a regular
// expression its checks cost nothing at a program's start, which a function in AWS pays at
// every cold start.
package ascii

import "strings"

// Only reports whether a text is not empty and consists of A-Z, a-z, 0-9 and the
// characters of more, which are of ASCII.
func Only(text, more string) bool {
	for i := range len(text) {
		if !IsAlphanumeric(text[i]) && strings.IndexByte(more, text[i]) < 0 {
			return false
		}
	}
	return text != ""
}

// IsAlphanumeric reports whether a byte is one of A-Z, a-z and 0-9.
func IsAlphanumeric(b byte) bool {
	return 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' || IsDigit(b)
}

// IsDigit reports whether a byte is one of 0-9.
func IsDigit(b byte) bool { return '0' <= b && b <= '9' }
