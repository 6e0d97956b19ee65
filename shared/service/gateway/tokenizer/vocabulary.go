package tokenizer

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"fmt"
	"io"
)

// packed is the vocabulary cl100k_base of OpenAI's tiktoken, compressed (LICENSE.tiktoken). It
// contains the length of each token in one byte and then its bytes, in the order of ids.
//
//go:embed cl100k_base.deflate
var packed []byte

type vocabulary struct {
	tokens []string
	ids    map[string]uint32
}

const size = 100_256

func unpack() *vocabulary {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		panic(fmt.Sprintf("tokenizer: the built-in vocabulary is invalid: %v", err)) // cannot happen: a test reads it
	}
	all := string(text)
	v := &vocabulary{make([]string, 0, size), make(map[string]uint32, size)}
	for len(all) > 0 {
		end := 1 + int(all[0])
		v.ids[all[1:end]] = uint32(len(v.tokens))
		v.tokens = append(v.tokens, all[1:end])
		all = all[end:]
	}
	return v
}

// none is not a valid token id.
const none = 1<<32 - 1

func (v *vocabulary) find(token string) uint32 {
	if id, ok := v.ids[token]; ok {
		return id
	}
	return none
}
