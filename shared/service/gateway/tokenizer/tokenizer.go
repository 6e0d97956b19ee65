// Package tokenizer counts, encodes and decodes tokens offline, by the cl100k_base
// vocabulary that is compiled into it.
//
// Every model has a vocabulary of its own, so a count by this one is an estimate
// for any other: it serves where an upstream does not say how many tokens it
// used. Those of Llama 3 and of Qwen were made from it. For the embedded model server,
// whose vocabulary it is, it is exact.
package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// chunkSize is how much text is looked at in one piece, in bytes. It bounds the
// memory that the count of a long text takes, and the work for one that is a
// single word.
const chunkSize = 4 << 10

// Tokenizer is safe for use by many goroutines at once. The vocabulary takes
// about 5 MB of memory once it is used for the first time.
type Tokenizer struct {
	codec func() *codec.Codec
}

// New makes a tokenizer; it loads nothing yet.
func New() *Tokenizer { return &Tokenizer{codec: sync.OnceValue(codec.NewCl100kBase)} }

// Count returns how many tokens the text has. In a text of more than 4 KiB
// tokens do not reach across the bounds of chunks, so that there may be one more
// for every chunk.
func (t *Tokenizer) Count(text string) int {
	count := 0
	for len(text) > 0 {
		var chunk string
		chunk, text = cut(text)
		n, err := t.codec().Count(chunk)
		if err != nil {
			// The library's pattern cannot fail on text but for a time limit,
			// which is not set; four bytes a token is the rule of thumb.
			n = (len(chunk) + 3) / 4
		}
		count += n
	}
	return count
}

// Encode returns the tokens of the text, which decode to it again; bytes that are
// no UTF-8 are replaced by U+FFFD.
func (t *Tokenizer) Encode(text string) ([]int, error) {
	ids := make([]int, 0, len(text)/4+1)
	for len(text) > 0 {
		var chunk string
		chunk, text = cut(text)
		found, _, err := t.codec().Encode(chunk)
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
		for _, id := range found {
			ids = append(ids, int(id))
		}
	}
	return ids, nil
}

// Decode returns the bytes of the tokens. Those of one token need not be whole
// characters.
//
// Errors: where an id is none of the vocabulary's.
func (t *Tokenizer) Decode(ids ...int) (string, error) {
	unsigned := make([]uint, len(ids))
	for i, id := range ids {
		if id < 0 {
			return "", fmt.Errorf("tokenizer: invalid token: %d", id)
		}
		unsigned[i] = uint(id)
	}
	text, err := t.codec().Decode(unsigned)
	if err != nil {
		return "", fmt.Errorf("tokenizer: %w", err)
	}
	return text, nil
}

// cut splits a text after its first chunk: before a space where one is near, so
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
