package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
)

// Impossible usage reports are neither billed nor shown. The gateway's own count is used instead.
func TestImpossibleUsageIsReplaced(t *testing.T) {
	believed := func(cached, reasoning int64) usage.Counts {
		return usage.Counts{Requests: 1, PromptTokens: 11, CompletionTokens: 5, CachedTokens: cached,
			ReasoningTokens: reasoning}
	}
	complete := func(total string, cached int) string {
		return fmt.Sprintf(`{"prompt_tokens":11,"completion_tokens":5,"total_tokens":%s,"prompt_tokens_details":{"cached_tokens":%d},`+
			`"completion_tokens_details":{"reasoning_tokens":2}}`, total, cached)
	}
	for _, c := range []struct {
		name, reported string
		counts         usage.Counts
		logged         bool
	}{
		{"a usual report", `{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16}`, believed(0, 0), false},
		{"with details", `{"prompt_tokens":11,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}`, believed(3, 2), false},
		{"a complete report", complete(`16`, 3), believed(3, 2), false},
		{"a complete report with a wrong total", complete(`17`, 3), believed(3, 2), false},
		{"a complete report with two totals", complete(`16,"total_tokens":17`, 3), believed(3, 2), false},
		{"a complete report with a total of 16.0", complete(`16.0`, 3), believed(3, 2), false},
		{"a complete report with too many cached tokens", complete(`16`, 12), believed(0, 2), false},
		{"written with a decimal point", `{"prompt_tokens":11.0,"completion_tokens":5.00,"total_tokens":16.0}`, believed(0, 0), false},
		{"the maximum", `{"prompt_tokens":8192,"completion_tokens":1000}`, usage.Counts{Requests: 1, PromptTokens: 8192, CompletionTokens: 1000}, false},
		{"one above the maximum", `{"prompt_tokens":8192,"completion_tokens":1001}`, counted(2), true},
		{"a prompt of 1e15", `{"prompt_tokens":1000000000000000,"completion_tokens":5,"total_tokens":16}`, counted(2), true},
		{"a completion of 1e15", `{"prompt_tokens":11,"completion_tokens":1e15,"total_tokens":16}`, counted(2), true},
		{"beyond integers", `{"prompt_tokens":11,"completion_tokens":99999999999999999999999}`, counted(2), true},
		{"two that overflow together", `{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`, counted(2), true},
		{"negative numbers", `{"prompt_tokens":11,"completion_tokens":-5}`, counted(2), true},
		{"a negative prompt", `{"prompt_tokens":-9223372036854775808,"completion_tokens":5}`, counted(2), true},
		{"a fraction", `{"prompt_tokens":11.5,"completion_tokens":5}`, counted(2), true},
		{"infinity", `{"prompt_tokens":1e999,"completion_tokens":5}`, counted(2), true},
		{"strings", `{"prompt_tokens":"11","completion_tokens":"5"}`, counted(2), true},
		{"objects", `{"prompt_tokens":{},"completion_tokens":[5]}`, counted(2), true},
		{"truths", `{"prompt_tokens":true,"completion_tokens":true}`, counted(2), true},
		{"nothing", `{"prompt_tokens":null,"completion_tokens":null,"total_tokens":null}`, counted(2), false},
		{"only one number", `{"completion_tokens":5}`, counted(2), false},
		{"an empty object", `{}`, counted(2), false},
		{"none", `null`, counted(2), false},
		{"a list", `[1]`, counted(2), false},
		{"a total of 1e15", `{"prompt_tokens":11,"completion_tokens":5,"total_tokens":1e15}`, believed(0, 0), false},
		{"a total that is text", `{"prompt_tokens":11,"completion_tokens":5,"total_tokens":"16"}`, believed(0, 0), false},
		{"more cached tokens than the prompt", `{"prompt_tokens":11,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":1e9}}`, believed(0, 0), false},
		{"more from the cache than the prompt", `{"prompt_tokens":11,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":12}}`, believed(0, 0), false},
		{"negative reasoning tokens", `{"prompt_tokens":11,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":-2}}`, believed(0, 0), false},
		{"malformed details", `{"prompt_tokens":11,"completion_tokens":5,"prompt_tokens_details":7,"completion_tokens_details":"x"}`, believed(0, 0), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t, always(200, `{"id":"c1","object":"chat.completion","created":7,"model":"weights",`+
				`"choices":[{"index":0,"message":{"role":"assistant","content":"hello there"},"finish_reason":"stop"}],"usage":`+
				c.reported+`}`))
			w := newWorld(t, setup{upstreams: []*modelServer{u}})
			a := w.chat(plain)
			if a.status != 200 || a.header.Get("X-Tokens-Used") != tokens(c.counts) {
				t.Errorf("got %d with %s tokens", a.status, a.header.Get("X-Tokens-Used"))
			}
			w.shows(a.body, c.counts)
			if r := w.recorded(1)[0]; r.Counts != c.counts {
				t.Errorf("recorded %+v, want %+v", r.Counts, c.counts)
			}
			if logged := strings.Contains(w.log.String(), "impossible token counts"); logged != c.logged ||
				logged && !strings.Contains(w.log.String(), `"upstream":"first"`) {
				t.Errorf("logged: %v, want %v: %s", logged, c.logged, w.log)
			}

			// The usage may come in the last chunk with content or in a separate chunk after it.
			ending := strings.Replace(used, `{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16}`, c.reported, 1)
			beside := strings.Replace(last, `"choices"`, `"usage":`+c.reported+`,"choices"`, 1)
			for i, answer := range [][]string{{chunk("hello there"), last, ending, done}, {chunk("hello there"), beside, done}} {
				u.now(events(answer...))
				a := w.chat(asking)
				shown := 0
				for _, line := range strings.Split(a.body, "\n\n") {
					data, _ := strings.CutPrefix(line, "data: ")
					var chunk struct{ Usage *json.RawMessage }
					if json.Unmarshal([]byte(data), &chunk) == nil && chunk.Usage != nil && string(*chunk.Usage) != "null" &&
						string(*chunk.Usage) != "[1]" {
						shown++
						w.shows(data, c.counts)
					}
				}
				if shown != 1 || a.trailer.Get("X-Tokens-Used") != tokens(c.counts) {
					t.Errorf("%d usages in the stream, and %s tokens: %s", shown, a.trailer.Get("X-Tokens-Used"), a.body)
				}
				if r := w.recorded(i + 2)[i+1]; r.Counts != c.counts {
					t.Errorf("recorded of the stream %+v, want %+v", r.Counts, c.counts)
				}
			}
		})
	}
}

func (w *world) shows(text string, want usage.Counts) {
	w.t.Helper()
	var shown struct {
		Usage struct {
			Prompt     json.Number `json:"prompt_tokens"`
			Completion json.Number `json:"completion_tokens"`
			Total      json.Number `json:"total_tokens"`
			Cached     struct {
				Tokens json.Number `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
			Reasoning struct {
				Tokens json.Number `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		}
	}
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		w.t.Errorf("%s: %v", text, err)
	}
	is := func(name string, got json.Number, want int64) {
		w.t.Helper()
		if n, err := got.Int64(); got != "" && (err != nil || n != want) {
			w.t.Errorf("%s is shown as %s, want %d: %s", name, got, want, text)
		}
	}
	is("prompt_tokens", shown.Usage.Prompt, want.PromptTokens)
	is("completion_tokens", shown.Usage.Completion, want.CompletionTokens)
	is("total_tokens", shown.Usage.Total, want.PromptTokens+want.CompletionTokens)
	is("cached_tokens", shown.Usage.Cached.Tokens, want.CachedTokens)
	is("reasoning_tokens", shown.Usage.Reasoning.Tokens, want.ReasoningTokens)
}

func TestUsageOfSeveralCompletionsIsAccepted(t *testing.T) {
	answer := `{"id":"c1","object":"text_completion","created":7,"model":"weights","choices":[],` +
		`"usage":{"prompt_tokens":16384,"completion_tokens":4000,"total_tokens":20384}}`
	w := newWorld(t, setup{upstreams: []*modelServer{newUpstream(t, always(200, answer))}})
	w.complete(`{"model":"small","prompt":["a","b"],"n":2}`)
	w.complete(`{"model":"small","prompt":["a","b"]}`)
	if r := w.recorded(2); r[0].Estimated != 0 || r[0].PromptTokens != 16384 || r[1].Estimated != 1 {
		t.Errorf("recorded %+v", r)
	}
}

// Implausible usage reports are not billed. A plausible report becomes a debt that blocks only its account.
func TestFalseUsageIsLimited(t *testing.T) {
	u := newUpstream(t, always(200, strings.Replace(whole, `"completion_tokens":5`,
		`"completion_tokens":1000000000000000`, 1)))
	w := newWorld(t, setup{upstreams: []*modelServer{u}, tier: credential.Tier{InferenceTokensPerMinute: 20}})
	w.stopClock()
	for range 3 {
		if a := w.chat(plain); a.status != 200 { // 8 tokens by the gateway's own count
			t.Fatalf("got %d %s", a.status, a.body)
		}
	}
	if a := w.chat(plain); a.status != 429 || a.header.Get("Retry-After") != "15" {
		t.Errorf("got %d after %q", a.status, a.header.Get("Retry-After"))
	}
	other := w.do(w.request(t.Context(), "POST", "/v1/chat/completions", rival, strings.NewReader(plain)))
	if other.status != 200 {
		t.Errorf("another account: %d %s", other.status, other.body)
	}
	// A plausible report becomes a debt, which is paid off at the tier's rate.
	u.now(always(200, strings.Replace(whole, `"completion_tokens":5`, `"completion_tokens":9000`, 1)))
	w.wait(time.Minute)
	w.chat(plain)
	if a := w.chat(plain); a.status != 429 || a.header.Get("Retry-After") != "26988" {
		t.Errorf("got %d after %q", a.status, a.header.Get("Retry-After"))
	}
	w.wait(8 * time.Hour)
	if a := w.chat(plain); a.status != 200 {
		t.Errorf("eight hours later: %d %s", a.status, a.body)
	}
}

func TestEndlessTextIsNotBilled(t *testing.T) {
	flood := strings.Repeat("word ", 100_000)
	most := usage.Counts{Requests: 1, PromptTokens: counted(2).PromptTokens, Estimated: 1}
	most.CompletionTokens = 1000
	whole := `{"choices":[{"index":0,"message":{"role":"assistant","content":"` + flood + `"},"finish_reason":"stop"}]}`
	u := newUpstream(t, always(200, whole))
	w := newWorld(t, setup{upstreams: []*modelServer{u}})
	if a := w.chat(plain); a.status != 200 || a.header.Get("X-Tokens-Used") != tokens(most) {
		t.Errorf("got %d with %s tokens, want %s", a.status, a.header.Get("X-Tokens-Used"), tokens(most))
	}
	// The stream continues after it has reported its usage.
	early := strings.Replace(used, `{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16}`,
		`{"prompt_tokens":9000,"completion_tokens":5}`, 1)
	u.now(events(early, chunk(flood), last, done))
	w.chat(asking)
	records := w.recorded(2)
	if records[0].Counts != most {
		t.Errorf("recorded %+v, want %+v", records[0].Counts, most)
	}
	if c := records[1].Counts; c.PromptTokens != 9000 || c.CompletionTokens != 192 || c.Estimated != 1 {
		t.Errorf("recorded %+v after a usage that came too early", c)
	}
}
