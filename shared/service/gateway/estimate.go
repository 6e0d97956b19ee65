package gateway

import "math/rand/v2"

const (
	// estimateText is the number of bytes that are fully tokenized. Only samples of the rest are
	// tokenized, because tokenizing takes a second or more per megabyte.
	estimateText = 64 << 10
	// sampleText is the size of a sample in bytes. Longer texts have longer gaps between samples.
	sampleText = 4 << 10
)

// estimate estimates the number of tokens in a text. Callers cannot predict which parts are sampled.
type estimate struct {
	tokenizer Tokenizer
	// tokens is the estimate for the first part of the text, whose length is bytes. The skipped bytes after that part
	// are assumed to have the density of the last sample: lastTokens per lastBytes.
	tokens, bytes, skipped, lastTokens, lastBytes int64
	gap                                           int64
}

func (e *estimate) add(text []byte) {
	for len(text) > 0 {
		size := estimateText - e.bytes
		if size <= 0 {
			skip := min(e.gap, int64(len(text)))
			e.gap, e.skipped, text = e.gap-skip, e.skipped+skip, text[skip:]
			size = sampleText
		}
		sample := text[:min(size, int64(len(text)))]
		if len(sample) == 0 {
			return
		}
		e.lastTokens, e.lastBytes = int64(e.tokenizer.Count(string(sample))), int64(len(sample))
		e.tokens = e.total() + e.lastTokens
		e.bytes += e.skipped + e.lastBytes
		e.skipped, text = 0, text[len(sample):]
		if e.bytes >= estimateText {
			e.gap = rand.Int64N(sampleText + (e.bytes-estimateText)/4)
		}
	}
}

func (e *estimate) total() int64 {
	if e.skipped == 0 {
		return e.tokens
	}
	return e.tokens + int64(float64(e.skipped)/float64(e.lastBytes)*float64(e.lastTokens))
}
