package engine

import (
	"strings"
	"unicode"
)

// OneLine removes control characters and line breaks, and truncates the text to longest, in code points.
func OneLine(text string, longest int) string {
	text = strings.Join(
		strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }), " ",
	)
	if points := []rune(text); len(points) > longest {
		return string(points[:longest]) + "…"
	}
	return text
}
