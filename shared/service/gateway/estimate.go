package gateway

// estimateText is the number of bytes of text that are tokenized. The rest is assumed to be
// similar, because tokenizing takes a second or more per megabyte.
const estimateText = 64 << 10

type estimate struct {
	tokenizer Tokenizer
	// tokens is the count for the first bytes. more is the length of the rest in bytes.
	tokens, bytes, more int64
}

func (e *estimate) add(text []byte) {
	counted := text[:min(int64(len(text)), estimateText-e.bytes)]
	if len(counted) > 0 {
		e.tokens += int64(e.tokenizer.Count(string(counted)))
		e.bytes += int64(len(counted))
	}
	e.more += int64(len(text) - len(counted))
}

func (e *estimate) total() int64 {
	if e.more == 0 {
		return e.tokens
	}
	return e.tokens + int64(float64(e.more)/float64(e.bytes)*float64(e.tokens))
}
