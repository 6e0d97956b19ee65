package catalog_test

import (
	"math"
	"testing"

	"cutroom/shared/domain/catalog"
)

func TestTokenPriceIsExact(t *testing.T) {
	t.Parallel()
	price := catalog.TokenPrice{Input: 150_000, Cached: 30_000, Output: 600_000, Reasoning: 900_000}
	const most = math.MaxInt64
	for _, c := range []struct {
		says  string
		price catalog.TokenPrice
		used  catalog.Tokens
		want  int64
	}{
		{"nothing", price, catalog.Tokens{}, 0},
		{"a prompt", price, catalog.Tokens{Prompt: 1000}, 150_000},
		{"a partly cached prompt", price, catalog.Tokens{Prompt: 1000, Cached: 400}, 90_000 + 12_000},
		{"a completion", price, catalog.Tokens{Completion: 10}, 6_000},
		{"a completion with reasoning", price, catalog.Tokens{Completion: 10, Reasoning: 4}, 3_600 + 3_600},
		{"more cached tokens than the prompt", price, catalog.Tokens{Prompt: 10, Cached: 11}, 300},
		{"less than a billionth", catalog.TokenPrice{Input: 1}, catalog.Tokens{Prompt: 1}, 1},
		{"slightly more than a billionth", catalog.TokenPrice{Input: 1}, catalog.Tokens{Prompt: 1001}, 2},
		{"the price per call", catalog.TokenPrice{Call: 2_000}, catalog.Tokens{Prompt: 5}, 2_000_000},
		{"the maximum", catalog.TokenPrice{Input: most, Output: most, Call: most},
			catalog.Tokens{Prompt: most, Completion: most}, 1e15},
		{"the maximum cost", catalog.TokenPrice{Input: 1000}, catalog.Tokens{Prompt: 1e15}, 1e15},
		{"above the maximum cost", catalog.TokenPrice{Input: 1000}, catalog.Tokens{Prompt: 1e15 + 1}, 1e15},
	} {
		if got := c.price.Of(c.used); got != c.want {
			t.Errorf("%s: %d, want %d", c.says, got, c.want)
		}
	}
}

func TestBatchPriceIsExact(t *testing.T) {
	used := catalog.Tokens{Prompt: 1_000_003}
	for _, c := range []struct{ input, part, want int64 }{
		{1_000_000, 1_000_000, 1_000_003_000}, {1_000_000, 500_000, 500_001_500}, {1, 500_000, 501}, {1_000_000, 0, 0},
		{1e12, 999_999, 999_999e9},
	} {
		price := catalog.TokenPrice{Input: c.input, Batch: c.part}
		if got := price.OfBatch(used); got != c.want {
			t.Errorf("batch factor %d, cost %d: got %d, want %d", c.part, c.input, got, c.want)
		}
	}
}
