// Package tokenizer counts, encodes and decodes tokens with the built-in cl100k_base vocabulary.
//
// Counts are exact for the embedded model server and estimates for most other models. The
// vocabularies of Llama 3 and Qwen are derived from this one.
package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// chunkSize limits the bytes that are tokenized together. It limits the memory used for a long
// text, and the time for a long word.
const chunkSize = 4 << 10

// Tokenizer is safe for concurrent use. The vocabulary takes about 5 MB of memory after its first use.
type Tokenizer struct {
	vocabulary func() *vocabulary
}

func New() *Tokenizer { return &Tokenizer{sync.OnceValue(unpack)} }

// Count returns the number of tokens in the text. In a text of more than 4 KiB, the count may be
// too high by one per 4 KiB.
func (t *Tokenizer) Count(text string) int {
	count := 0
	t.encode(text, func(uint32) { count++ })
	return count
}

// Encode returns the tokens of the text. It replaces invalid UTF-8 with U+FFFD.
func (t *Tokenizer) Encode(text string) []int {
	ids := make([]int, 0, len(text)/4+1)
	t.encode(text, func(id uint32) { ids = append(ids, int(id)) })
	return ids
}

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

// Decode returns the bytes of the tokens, which may start or end within a character. An unknown id is an error.
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

// cut splits off a text's first chunk: before a space if there is one nearby, and never within a character.
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
