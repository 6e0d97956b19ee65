package gateway

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/usage"
)

const (
	// tallyText is how much generated text is kept before it is counted, in
	// bytes: most streams end with a usage, and then it never is.
	tallyText = 8 << 10
)

// tally counts the tokens of one completion. What the upstream says counts;
// where it says nothing or what cannot be, or generates more after it did, the
// text is counted here, and marked as an estimate.
type tally struct {
	// maxTokens is how many tokens the completion can have used at maxTokens: accounts are
	// billed by what an upstream says, and shut out by it.
	maxTokens int64
	// reported is what the upstream said last, known whether it did, and doubted
	// whether it said what cannot be.
	reported           usage.Counts
	known, implausible bool
	// later reports that text came after that.
	textSince bool
	// text was generated and is not counted yet; generated is all before it.
	text      []byte
	generated estimate
}

// reset forgets what another upstream has said.
func (t *tally) reset() {
	*t = tally{generated: estimate{tokenizer: t.generated.tokenizer}, maxTokens: t.maxTokens, text: t.text[:0]}
}

// addChoice counts the text of one choice of a chunk or of a whole answer, and
// reports whether it says why it ended.
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
	// The last word may go on.
	end := strings.LastIndexByte(unsafeString(t.text), ' ')
	if end <= 0 {
		end = len(t.text)
	}
	t.generated.add(t.text[:end])
	t.text = append(t.text[:0], t.text[end:]...)
}

// report takes a usage of the upstream's, and reports whether it is one. What
// cannot be, or is no number of tokens, is not believed, nor is what came before.
func (t *tally) report(reported gjson.Result) (believed bool) {
	counts, present, ok := usageOf(reported)
	if !present {
		return false
	}
	if ok = ok && counts.PromptTokens <= t.maxTokens && counts.CompletionTokens <= t.maxTokens && billed(counts) <= t.maxTokens; ok {
		t.reported, t.known, t.textSince = counts, true, false
	} else {
		t.reported, t.known, t.implausible = usage.Counts{}, false, true
	}
	return ok
}

// counts gives what the completion has used; prompt counts the tokens of the
// prompt, where the upstream did not. What is counted here is bounded as what an
// upstream says: one that sends text without end has not generated it.
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
	counts.CompletionTokens, counts.Estimated = min(generated, t.maxTokens-counts.PromptTokens), 1
	return counts
}

// usageOf reads a usage. told reports whether it says how many tokens there were,
// ok whether that are numbers of tokens. Of the details what cannot be is left
// out.
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

// isInteger reports whether a value is the number, as an integer is written.
func isInteger(value gjson.Result, n int64) bool {
	var room [20]byte
	return value.Type == gjson.Number && value.Raw == unsafeString(strconv.AppendInt(room[:0], n, 10))
}

// billed is what a completion counts for: every token that was read or
// generated.
func billed(c usage.Counts) int64 { return c.PromptTokens + c.CompletionTokens }
