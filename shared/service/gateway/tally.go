package gateway

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/usage"
)

const (
	// tallyText is how many bytes of generated text are kept before they are counted. Most streams
	// end with a usage, so the text is never counted.
	tallyText = 8 << 10
)

// tally counts the tokens of one completion. The upstream's report counts. If
// it is missing or impossible, or more text follows it, the text is counted
// here and marked as an estimate.
type tally struct {
	// maxTokens is the largest possible use of the completion. It limits the upstream's report,
	// which is billed and counts against the account's rate.
	maxTokens int64
	// maxGenerated is how many tokens the completion may generate. It limits estimates.
	maxGenerated int64
	// reported is the upstream's last report. known means that one exists, implausible that one was
	// impossible.
	reported           usage.Counts
	known, implausible bool
	// textSince means that text followed the report.
	textSince bool
	// text was generated and not counted yet. generated is the count of earlier text.
	text      []byte
	generated estimate
}

// reset drops another upstream's reports.
func (t *tally) reset() {
	*t = tally{generated: estimate{tokenizer: t.generated.tokenizer}, maxTokens: t.maxTokens, maxGenerated: t.maxGenerated,
		text: t.text[:0]}
}

// addChoice counts the text of one choice of a chunk or of a whole answer, and reports whether it
// has a finish reason.
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

// report records an upstream's usage, and reports whether it is plausible. An impossible one also
// discredits earlier ones.
func (t *tally) report(reported gjson.Result) (believed bool) {
	return t.take(usageOf(reported))
}

// take is report for a parsed usage.
func (t *tally) take(counts usage.Counts, present, ok bool) (believed bool) {
	if !present {
		return false
	}
	// Check each: the sum of two huge numbers may overflow.
	ok = ok && counts.PromptTokens <= t.maxTokens && counts.CompletionTokens <= t.maxTokens &&
		billed(counts) <= t.maxTokens
	if ok {
		t.reported, t.known, t.textSince = counts, true, false
	} else {
		t.reported, t.known, t.implausible = usage.Counts{}, false, true
	}
	return ok
}

// counts returns the completion's usage. prompt counts the prompt's tokens if the upstream did not.
// Estimates are limited like reports: an upstream that sends endless text has not generated it.
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

// usageOf reads a usage. present reports whether it has tokens, and ok whether these are valid
// numbers. It ignores invalid details.
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

// isInteger reports whether a value is n, written as an integer.
func isInteger(value gjson.Result, n int64) bool {
	var room [20]byte
	return value.Type == gjson.Number && value.Raw == string(strconv.AppendInt(room[:0], n, 10))
}

// billed returns the billed tokens: all read and generated ones.
func billed(c usage.Counts) int64 { return c.PromptTokens + c.CompletionTokens }
