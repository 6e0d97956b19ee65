// Package ascii checks which characters a name or a secret has. Its checks need no compilation, so
// they cost nothing at a program's start, unlike regular expressions.
package ascii

import "strings"

// Only reports whether a text is not empty and has only A-Z, a-z, 0-9 and the ASCII characters of more.
func Only(text, more string) bool {
	for i := range len(text) {
		if !IsAlphanumeric(text[i]) && strings.IndexByte(more, text[i]) < 0 {
			return false
		}
	}
	return text != ""
}

func IsAlphanumeric(b byte) bool {
	return 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' || IsDigit(b)
}

func IsDigit(b byte) bool { return '0' <= b && b <= '9' }
