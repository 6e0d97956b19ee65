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

	"github.com/tiktoken-go/tokenizer/codec"
)

// chunkSize is how much text is tokenized in one piece, in bytes. It bounds the
// memory for counting a long text, and the work for a text that is a single
// word.
const chunkSize = 4 << 10

// Tokenizer is safe for use by many goroutines at once. The vocabulary takes
// about 5 MB of memory from its first use on.
type Tokenizer struct {
	codec func() *codec.Codec
}

// New returns a tokenizer. It loads the vocabulary on first use.
func New() *Tokenizer { return &Tokenizer{codec: sync.OnceValue(codec.NewCl100kBase)} }

// Count returns how many tokens the text has. A text of more than 4 KiB is cut
// into chunks, and tokens do not span them, so the count may be too high by one
// per chunk.
func (t *Tokenizer) Count(text string) int {
	count := 0
	for len(text) > 0 {
		var chunk string
		chunk, text = cut(text)
		n, err := t.codec().Count(chunk)
		if err != nil {
			// The library's pattern fails only on a time limit, which is not
			// set. Four bytes per token is the rule of thumb.
			n = (len(chunk) + 3) / 4
		}
		count += n
	}
	return count
}

// Encode returns the tokens of the text, which decode to it again; invalid
// UTF-8 is replaced by U+FFFD.
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

// Decode returns the bytes of the tokens. A single token need not be whole
// characters. It fails if an id is not in the vocabulary.
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
