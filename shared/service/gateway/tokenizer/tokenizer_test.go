package tokenizer_test

import (
	"strings"
	"sync"
	"testing"

	"cutroom/shared/service/gateway/tokenizer"
)

var texts = []string{
	"", " ", "a", "The quick brown fox.", "Grüße aus Köln 🤚🏾!", "日本語のテキスト", "a\x00b",
	"func main() {\n\tfmt.Println(\"hi\")\n}\n",
	strings.Repeat("The quick brown fox jumps over the lazy dog. ", 1000),
	strings.Repeat("日本語", 5000), strings.Repeat("🤚🏾", 3000),
	strings.Repeat("a", 20_000), strings.Repeat(" ", 20_000),
}

func TestTextDecodesToItself(t *testing.T) {
	tok := tokenizer.New()
	for _, text := range texts {
		ids := tok.Encode(text)
		got, err := tok.Decode(ids...)
		if err != nil || got != text {
			t.Errorf("%.40q… of %d bytes decodes to %.40q… of %d, %v", text, len(text), got, len(got), err)
		}
		if n := tok.Count(text); n != len(ids) {
			t.Errorf("%.40q… counts %d tokens and has %d", text, n, len(ids))
		}
	}
}

func TestInvalidUTF8IsCounted(t *testing.T) {
	tok := tokenizer.New()
	for _, text := range []string{"\xff\xfe broken", strings.Repeat("\xff", 5000), strings.Repeat("\x80", 5000),
		"\xf0\x9f"} {
		if tok.Count(text) == 0 {
			t.Errorf("%.40q counts no tokens", text)
		}
	}
}

// Each chunk boundary changes a long text's count by at most one.
func TestChunksBarelyChangeTheCount(t *testing.T) {
	tok := tokenizer.New()
	sentence := "The quick brown fox jumps over the lazy dog."
	const repeats = 2000
	exact := tok.Count(sentence) + (repeats-1)*tok.Count(" "+sentence)
	got := tok.Count(strings.TrimSpace(strings.Repeat(sentence+" ", repeats)))
	if chunks := repeats * len(sentence) / 2048; got < exact || got > exact+chunks {
		t.Errorf("counted %d, want %d and at most %d more", got, exact, chunks)
	}
}

func TestDecodeRejectsUnknownTokens(t *testing.T) {
	tok := tokenizer.New()
	for _, ids := range [][]int{{-1}, {15339, 1 << 40}, {100_256 + 1}} {
		if text, err := tok.Decode(ids...); err == nil {
			t.Errorf("%v decodes to %q", ids, text)
		}
	}
}

func TestTokenizerIsSafeForConcurrentUse(t *testing.T) {
	tok := tokenizer.New()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ids := tok.Encode(texts[4])
			if got, err := tok.Decode(ids...); err != nil || got != texts[4] {
				t.Errorf("decoded %q, %v", got, err)
			}
		})
	}
	all.Wait()
}
