// Package tokenizer counts, encodes and decodes tokens offline, with the
// cl100k_base vocabulary that is compiled in.
//
// Every model has its own vocabulary, so for most models a count is an
// estimate, for upstreams that do not report how many tokens they used. The
// vocabularies of Llama 3 and Qwen were derived from this one. For the embedded
// model server, which uses it, counts are exact.
package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// chunkSize is how much text is tokenized in one piece, in bytes. It bounds the
// memory for counting a long text, and the work for a text that is a single
// word.
const chunkSize = 4 << 10

// Tokenizer is safe for use by many goroutines at once. The vocabulary takes
// about 5 MB of memory from its first use on.
type Tokenizer struct {
	vocabulary func() *vocabulary
}

// New returns a tokenizer. It loads the vocabulary on first use.
func New() *Tokenizer { return &Tokenizer{sync.OnceValue(unpack)} }

// Count returns how many tokens the text has. A text of more than 4 KiB is cut
// into chunks, and tokens do not span them, so the count may be too high by one
// per chunk.
func (t *Tokenizer) Count(text string) int {
	count := 0
	t.encode(text, func(uint32) { count++ })
	return count
}

// Encode returns the tokens of the text, which decode to it again; bytes of invalid UTF-8 are
// replaced by U+FFFD.
func (t *Tokenizer) Encode(text string) []int {
	ids := make([]int, 0, len(text)/4+1)
	t.encode(text, func(id uint32) { ids = append(ids, int(id)) })
	return ids
}

// encode calls yield with each token of the text.
func (t *Tokenizer) encode(text string, yield func(id uint32)) {
	known := t.vocabulary()
	for len(text) > 0 {
		var chunk string
		chunk, text = cut(text)
		if !utf8.ValidString(chunk) {
			chunk = string([]rune(chunk))
		}
		for len(chunk) > 0 {
			end := pieceEnd(chunk)
			known.merge(chunk[:end], yield)
			chunk = chunk[end:]
		}
	}
}

// Decode returns the bytes of the tokens. A single token need not be whole
// characters. It fails if an id is not in the vocabulary.
func (t *Tokenizer) Decode(ids ...int) (string, error) {
	known := t.vocabulary()
	var text strings.Builder
	for _, id := range ids {
		if id < 0 || id >= len(known.tokens) {
			return "", fmt.Errorf("tokenizer: invalid token: %d", id)
		}
		text.WriteString(known.tokens[id])
	}
	return text.String(), nil
}

// cut splits a text after its first chunk: before a space if one is near, so
// that words stay whole, and never inside a character.
func cut(text string) (chunk, rest string) {
	if len(text) <= chunkSize {
		return text, ""
	}
	end := chunkSize
	for end > chunkSize-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexByte(text[:end], ' '); space > chunkSize/2 {
		end = space
	}
	return text[:end], text[end:]
}
