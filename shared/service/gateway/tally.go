package gateway

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/usage"
)

const (
	// tallyText is how much generated text is kept before it is counted, in
	// bytes. Most streams end with a usage, and then it never is.
	tallyText = 8 << 10
)

// tally counts the tokens of one completion. The upstream's report counts. If
// it is missing or impossible, or more text follows it, the text is counted
// here and marked as an estimate.
type tally struct {
	// maxTokens is the most that the completion can have used. What an upstream
	// reports is billed and counts against the account's rate, so it is
	// bounded.
	maxTokens int64
	// maxGenerated is how many tokens the completion was allowed to generate. It limits
	// estimates.
	maxGenerated int64
	// reported is the upstream's last report, known whether there was one, and
	// implausible whether one was impossible.
	reported           usage.Counts
	known, implausible bool
	// textSince reports whether text followed the report.
	textSince bool
	// text was generated and not counted yet; generated counts all before it.
	text      []byte
	generated estimate
}

// reset forgets what another upstream reported.
func (t *tally) reset() {
	*t = tally{generated: estimate{tokenizer: t.generated.tokenizer}, maxTokens: t.maxTokens, maxGenerated: t.maxGenerated,
		text: t.text[:0]}
}

// addChoice counts the text of one choice of a chunk or of a whole answer, and
// reports whether it states why it ended.
func (t *tally) addChoice(choice gjson.Result) (finished bool) {
	choice.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "delta", "message":
			value.ForEach(func(key, value gjson.Result) bool {
				switch key.Str {
				case "content", "reasoning_content", "reasoning", "refusal":
					t.add(value.Str)
				case "tool_calls":
					value.ForEach(func(_, call gjson.Result) bool {
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
	return finished
}

// add counts a piece of generated text.
func (t *tally) add(piece string) {
	if piece == "" {
		return
	}
	t.textSince = true
	t.text = append(t.text, piece...)
	if len(t.text) < tallyText {
		return
	}
	// The last word may continue.
	end := bytes.LastIndexByte(t.text, ' ')
	if end <= 0 {
		end = len(t.text)
	}
	t.generated.add(t.text[:end])
	t.text = append(t.text[:0], t.text[end:]...)
}

// report takes an upstream's usage, and reports whether it is believed. An
// impossible one also discredits those before.
func (t *tally) report(reported gjson.Result) (believed bool) {
	return t.take(usageOf(reported))
}

// take is report for a usage that was read.
func (t *tally) take(counts usage.Counts, present, ok bool) (believed bool) {
	if !present {
		return false
	}
	// Each alone too: the sum of two huge numbers may overflow.
	ok = ok && counts.PromptTokens <= t.maxTokens && counts.CompletionTokens <= t.maxTokens &&
		billed(counts) <= t.maxTokens
	if ok {
		t.reported, t.known, t.textSince = counts, true, false
	} else {
		t.reported, t.known, t.implausible = usage.Counts{}, false, true
	}
	return ok
}

// counts returns what the completion used; prompt counts the prompt's tokens if
// the upstream did not. The estimate is bounded like a report: an upstream that
// sends text without end has not generated it.
func (t *tally) counts(prompt func() int64) usage.Counts {
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

// usageOf reads a usage. present reports whether it states tokens, and ok
// whether these are valid numbers. Invalid details are left out.
func usageOf(reported gjson.Result) (counts usage.Counts, present, ok bool) {
	if !reported.IsObject() {
		return usage.Counts{}, false, false
	}
	var prompt, completion gjson.Result
	reported.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens":
			prompt = value
		case "completion_tokens":
			completion = value
		case "prompt_tokens_details":
			counts.CachedTokens, _ = tokens(value.Get("cached_tokens"))
		case "completion_tokens_details":
			counts.ReasoningTokens, _ = tokens(value.Get("reasoning_tokens"))
		}
		return true
	})
	if prompt.Type == gjson.Null || completion.Type == gjson.Null {
		return usage.Counts{}, false, false
	}
	var prompted, completed bool
	counts.PromptTokens, prompted = tokens(prompt)
	counts.CompletionTokens, completed = tokens(completion)
	if counts.CachedTokens > counts.PromptTokens {
		counts.CachedTokens = 0
	}
	if counts.ReasoningTokens > counts.CompletionTokens {
		counts.ReasoningTokens = 0
	}
	return counts, true, prompted && completed
}

// tokens reads a number of tokens, which may be written as 5.0.
func tokens(value gjson.Result) (n int64, ok bool) {
	if value.Type != gjson.Number {
		return 0, false
	}
	whole, fraction, _ := strings.Cut(value.Raw, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || strings.Trim(fraction, "0") != "" {
		return 0, false
	}
	return n, true
}

// isInteger reports whether a value is the number, written as an integer.
func isInteger(value gjson.Result, n int64) bool {
	var room [20]byte
	return value.Type == gjson.Number && value.Raw == string(strconv.AppendInt(room[:0], n, 10))
}

// billed is what a completion is billed for: every token read or generated.
func billed(c usage.Counts) int64 { return c.PromptTokens + c.CompletionTokens }
