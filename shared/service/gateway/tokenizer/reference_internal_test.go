package tokenizer

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The checksum is for the file cl100k_base.tiktoken, whose lines contain a base64 token and its id.
func TestVocabularyMatchesTiktoken(t *testing.T) {
	sum := sha256.New()
	for id, token := range unpack().tokens {
		fmt.Fprintf(sum, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), id)
	}
	const want = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("the sum is %s, want %s", got, want)
	}
}

// The file contains texts, most of them random, with their tokens according to tiktoken 0.14.0.
func TestTokensMatchTiktoken(t *testing.T) {
	file, err := os.Open("testdata/tiktoken.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tok, lines := New(), bufio.NewScanner(file)
	for lines.Scan() {
		var of struct {
			Text   string
			Tokens []int
		}
		if err := json.Unmarshal(lines.Bytes(), &of); err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode(of.Text); !slices.Equal(got, of.Tokens) {
			t.Errorf("%q is %v, want %v", of.Text, got, of.Tokens)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range []string{"The quick brown fox's 12345 tails.\n", "  \r\n\t x", "日本語のテキスト", "a\x00\xff\x7f"} {
		f.Add(text)
	}
	tok := New()
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		if got, err := tok.Decode(tok.Encode(text)...); got != text || err != nil {
			t.Errorf("%q decodes to %q, %v", text, got, err)
		}
	})
}
