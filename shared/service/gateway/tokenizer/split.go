package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// pieceEnd returns the end of the first piece of a text, which must not be empty. Tokens do not
// span pieces. A piece is the first match of these, which are tiktoken's for cl100k_base:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func pieceEnd(text string) int {
	if end := contraction(text); end > 0 {
		return end
	}
	first, width := utf8.DecodeRuneInString(text)
	switch {
	case unicode.IsLetter(first):
		return run(text, 0, unicode.IsLetter)
	case unicode.IsNumber(first):
		end := width
		for range 2 {
			if r, more := utf8.DecodeRuneInString(text[end:]); unicode.IsNumber(r) {
				end += more
			}
		}
		return end
	}
	if first != '\r' && first != '\n' {
		if end := run(text, width, unicode.IsLetter); end > width {
			return end
		}
	}
	begin := 0
	if first == ' ' {
		begin = 1
	}
	if end := run(text, begin, isOther); end > begin {
		return run(text, end, func(r rune) bool { return r == '\r' || r == '\n' })
	}
	return spacesEnd(text)
}

func spacesEnd(text string) int {
	end := run(text, 0, unicode.IsSpace)
	if newline := strings.LastIndexAny(text[:end], "\r\n"); newline >= 0 {
		return newline + 1
	}
	if end == len(text) {
		return end
	}
	// The last space belongs to the next piece, unless it is the only space.
	_, width := utf8.DecodeLastRuneInString(text[:end])
	if end > width {
		return end - width
	}
	return end
}

func contraction(text string) int {
	if !strings.HasPrefix(text, "'") {
		return 0
	}
	for _, ending := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if len(text) >= len(ending) && strings.EqualFold(text[:len(ending)], ending) {
			return len(ending)
		}
	}
	return 0
}

// run returns the end of the run of matching characters that starts at the given index.
func run(text string, from int, is func(rune) bool) int {
	for at, r := range text[from:] {
		if !is(r) {
			return from + at
		}
	}
	return len(text)
}

func isOther(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }
