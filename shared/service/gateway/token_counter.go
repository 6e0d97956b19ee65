package gateway

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway/jsonedit"
)

// maxUncounted is the number of bytes of generated text that are collected before they are counted.
// Most streams end with a usage report, so their text is never counted.
const maxUncounted = 8 << 10

// tokenCounter counts the tokens of one completion. If the upstream's report is missing,
// implausible or followed by text, it counts the text itself and marks the count as an estimate.
type tokenCounter struct {
	// maxTokens is the maximum usage of the completion. A report above it is implausible.
	maxTokens    int64
	maxGenerated int64
	// reported is the last plausible report, if known. implausible means that an implausible report was received.
	reported           usage.Counts
	known, implausible bool
	// textSince means that more text arrived after the report.
	textSince bool
	// text contains generated text that has not been counted yet. generated counts the tokens of earlier text.
	text      []byte
	generated estimate
}

// reset discards the reports of the previous upstream.
func (t *tokenCounter) reset() {
	*t = tokenCounter{generated: estimate{tokenizer: t.generated.tokenizer}, maxTokens: t.maxTokens, maxGenerated: t.maxGenerated,
		text: t.text[:0]}
}

// addChoice counts the text of a choice. It reports whether the choice has a finish reason, and whether it calls tools.
func (t *tokenCounter) addChoice(choice gjson.Result) (finished, calls bool) {
	jsonedit.ForEach(choice, func(key string, value gjson.Result) bool {
		switch key {
		case "delta", "message":
			jsonedit.ForEach(value, func(key string, value gjson.Result) bool {
				switch key {
				case "content", "reasoning_content", "reasoning", "refusal":
					if t.add(value.Str); value.IsArray() {
						jsonedit.ForEach(value, func(_ string, part gjson.Result) bool {
							t.add(part.Get("text").Str)
							return true
						})
					}
				case "audio":
					t.add(value.Get("transcript").Str)
				case "function_call":
					t.add(value.Get("name").Str)
					t.add(value.Get("arguments").Str)
				case "tool_calls":
					calls = true
					jsonedit.ForEach(value, func(_ string, call gjson.Result) bool {
						t.add(call.Get("function.name").Str)
						t.add(call.Get("function.arguments").Str)
						return true
					})
				}
				return true
			})
		case "text":
			t.add(value.Str)
		case "finish_reason":
			finished = value.Type == gjson.String
		}
		return true
	})
	return finished, calls
}

func (t *tokenCounter) add(piece string) {
	if piece == "" {
		return
	}
	t.textSince = true
	t.text = append(t.text, piece...)
	if len(t.text) < maxUncounted {
		return
	}
	// The last word may continue in the next piece.
	end := bytes.LastIndexByte(t.text, ' ')
	if end <= 0 {
		end = len(t.text)
	}
	t.generated.add(t.text[:end])
	t.text = append(t.text[:0], t.text[end:]...)
}

// report records an upstream's usage report. An implausible report also invalidates earlier ones. See usageOf for exact.
func (t *tokenCounter) report(reported gjson.Result) (believed, exact bool) {
	counts, present, ok, exact := usageOf(reported)
	return t.take(counts, present, ok), exact
}

func (t *tokenCounter) take(counts usage.Counts, present, ok bool) (believed bool) {
	if !present {
		return false
	}
	// Check each number separately, because the sum of two huge numbers may overflow.
	ok = ok && counts.PromptTokens <= t.maxTokens && counts.CompletionTokens <= t.maxTokens &&
		billed(counts) <= t.maxTokens
	if ok {
		t.reported, t.known, t.textSince = counts, true, false
	} else {
		t.reported, t.known, t.implausible = usage.Counts{}, false, true
	}
	return ok
}

// counts returns the completion's usage. If the upstream did not report the prompt's tokens, counts calls the
// function prompt to count them. Estimates are capped, because an upstream may send endless text.
func (t *tokenCounter) counts(prompt func() int64) usage.Counts {
	counts := t.reported
	counts.Requests = 1
	if t.known && !t.textSince {
		return counts
	}
	all := t.generated
	all.add(t.text)
	generated := all.total()
	if t.known && generated <= counts.CompletionTokens {
		return counts
	}
	if !t.known {
		counts.PromptTokens = min(prompt(), t.maxTokens)
	}
	counts.CompletionTokens, counts.Estimated = min(generated, t.maxGenerated, t.maxTokens-counts.PromptTokens), 1
	return counts
}

// usageOf parses a usage object. present reports whether it contains token counts. ok reports whether they are valid.
// exact reports whether it also has all other members that a response needs, each once, and with the same numbers.
func usageOf(reported gjson.Result) (counts usage.Counts, present, ok, exact bool) {
	if !reported.IsObject() {
		return usage.Counts{}, false, false, false
	}
	var prompt, completion, total, cached, reasoning gjson.Result
	members, known := 0, 0
	jsonedit.ForEach(reported, func(key string, value gjson.Result) bool {
		members++
		switch key {
		case "prompt_tokens":
			prompt = value
		case "completion_tokens":
			completion = value
		case "total_tokens":
			total = value
		case promptDetails:
			cached = jsonedit.Member(value, "cached_tokens")
		case completionDetails:
			reasoning = jsonedit.Member(value, "reasoning_tokens")
		default:
			return true
		}
		known++
		return true
	})
	if prompt.Type == gjson.Null || completion.Type == gjson.Null {
		return usage.Counts{}, false, false, false
	}
	var prompted, completed bool
	counts.PromptTokens, prompted = tokens(prompt)
	counts.CompletionTokens, completed = tokens(completion)
	if n, _ := tokens(cached); n <= counts.PromptTokens {
		counts.CachedTokens = n
	}
	if n, _ := tokens(reasoning); n <= counts.CompletionTokens {
		counts.ReasoningTokens = n
	}
	exact = known == 5 && members <= maxUsageMembers && isInteger(prompt, counts.PromptTokens) &&
		isInteger(completion, counts.CompletionTokens) && isInteger(total, billed(counts)) &&
		isInteger(cached, counts.CachedTokens) && isInteger(reasoning, counts.ReasoningTokens)
	return counts, true, prompted && completed, exact
}

// tokens parses a token count, which may be written as 5.0.
func tokens(value gjson.Result) (n int64, ok bool) {
	if value.Type != gjson.Number {
		return 0, false
	}
	if n, ok = plainInteger(value.Raw); ok {
		return n, true
	}
	whole, fraction, _ := strings.Cut(value.Raw, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || strings.Trim(fraction, "0") != "" {
		return 0, false
	}
	return n, true
}

// isInteger reports whether the JSON value is exactly n, without a fraction.
func isInteger(value gjson.Result, n int64) bool {
	if plain, ok := plainInteger(value.Raw); ok {
		return plain == n
	}
	return value.Raw == strconv.FormatInt(n, 10)
}

// plainInteger parses an integer that is written as usual: with at most 18 digits and nothing else.
func plainInteger(text string) (n int64, ok bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, len(text) == 1 || len(text) > 1 && len(text) <= 18 && text[0] != '0'
}

// billed returns the tokens that count toward limits. A character of speech counts as a token.
func billed(c usage.Counts) int64 {
	return c.PromptTokens + c.CompletionTokens + c.Characters + audioTokens*c.AudioSeconds
}
