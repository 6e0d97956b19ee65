package gateway

import (
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/usage"
)

const (
	// tallyText is how much generated text is kept before it is counted, in
	// bytes: most streams end with a usage, and then it never is.
	tallyText = 8 << 10
	// greatestCount bounds what an upstream is believed.
	greatestCount = 1 << 40
)

// tally counts the tokens of one completion. What the upstream says counts;
// where it says nothing, or generates more after it did, the text is counted
// here, and marked as an estimate.
type tally struct {
	tokenizer Tokenizer
	// reported is what the upstream said last, known whether it did.
	reported usage.Counts
	known    bool
	// later reports that text came after that.
	later bool
	// text was generated and is not counted yet; counted is how many tokens all
	// before it has.
	text    []byte
	counted int64
}

// reset forgets what another upstream has said.
func (t *tally) reset() {
	t.reported, t.known, t.later, t.text, t.counted = usage.Counts{}, false, false, t.text[:0], 0
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
	t.later = true
	t.text = append(t.text, piece...)
	if len(t.text) < tallyText {
		return
	}
	// The last word may go on.
	end := strings.LastIndexByte(view(t.text), ' ')
	if end <= 0 {
		end = len(t.text)
	}
	t.counted += int64(t.tokenizer.Count(string(t.text[:end])))
	t.text = append(t.text[:0], t.text[end:]...)
}

// report takes a usage of the upstream's; what is none is not taken.
func (t *tally) report(reported gjson.Result) {
	if counts, ok := usageOf(reported); ok {
		t.reported, t.known, t.later = counts, true, false
	}
}

// counts gives what the completion has used; prompt counts the tokens of the
// prompt, where the upstream did not.
func (t *tally) counts(prompt func() int64) usage.Counts {
	counts := t.reported
	counts.Requests = 1
	if t.known && !t.later {
		return counts
	}
	generated := t.counted + int64(t.tokenizer.Count(string(t.text)))
	if t.known && generated <= counts.CompletionTokens {
		return counts
	}
	if !t.known {
		counts.PromptTokens = prompt()
	}
	counts.CompletionTokens, counts.Estimated = generated, 1
	return counts
}

// usageOf reads a usage; ok is false where there is none.
func usageOf(reported gjson.Result) (counts usage.Counts, ok bool) {
	if !reported.IsObject() {
		return usage.Counts{}, false
	}
	var prompt, completion bool
	reported.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens":
			counts.PromptTokens, prompt = tokens(value), value.Type == gjson.Number
		case "completion_tokens":
			counts.CompletionTokens, completion = tokens(value), value.Type == gjson.Number
		case "prompt_tokens_details":
			counts.CachedTokens = tokens(value.Get("cached_tokens"))
		case "completion_tokens_details":
			counts.ReasoningTokens = tokens(value.Get("reasoning_tokens"))
		}
		return true
	})
	return counts, prompt && completion
}

func tokens(value gjson.Result) int64 { return min(max(value.Int(), 0), greatestCount) }

// billed is what a completion counts for: every token that was read or
// generated.
func billed(c usage.Counts) int64 { return c.PromptTokens + c.CompletionTokens }
