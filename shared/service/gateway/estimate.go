package gateway

// estimateText is how much of a text's tokens are counted, in bytes. The rest is
// taken to be like it: counting takes a second and more for each megabyte, which
// who sends or generates megabytes must not make the gateway spend.
const estimateText = 64 << 10

// estimate counts about how many tokens texts have.
type estimate struct {
	tokenizer Tokenizer
	// tokens is how many the first bytes have; more is the length of what follows.
	tokens, bytes, more int64
}

// add counts a text.
func (e *estimate) add(text []byte) {
	counted := text[:min(int64(len(text)), estimateText-e.bytes)]
	if len(counted) > 0 {
		e.tokens += int64(e.tokenizer.Count(string(counted)))
		e.bytes += int64(len(counted))
	}
	e.more += int64(len(text) - len(counted))
}

// total gives the tokens of all texts.
func (e *estimate) total() int64 {
	if e.more == 0 {
		return e.tokens
	}
	return e.tokens + int64(float64(e.more)/float64(e.bytes)*float64(e.tokens))
}
