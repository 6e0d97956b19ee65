package request_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/request"
)

const rows = `
limits: {video: {duration: 5m, width: 8, height: 8}, image: {pixels: 8}}
forms: {f: {fields: [{name: data, type: video}, {name: resolution, type: choice, values: [720p], default: 720p}]}}
models: [{id: media, kind: edit, form: f, fps: 20, sizes: {720p: 1280x720}}]
inference:
  - {id: plain, routes: [chat, completions], context_length: 8192, max_output_length: 1000, upstreams: [{url: "http://127.0.0.1"}]}
  - {id: thinker, routes: [chat], context_length: 8192, max_output_length: 1000, reasoning_effort: template, upstreams: [{url: "http://127.0.0.1"}]}
  - {id: bare, routes: [chat], context_length: 8192, max_output_length: 1000, chat_template_kwargs: false, stream_options: false, upstreams: [{url: "http://127.0.0.1"}]}
  - {id: modern, routes: [chat], context_length: 8192, max_output_length: 1000, max_tokens_field: max_completion_tokens, upstreams: [{url: "http://127.0.0.1"}]}
  - {id: cpp, routes: [chat], context_length: 8192, max_output_length: 1000, max_tokens_field: n_predict, upstreams: [{url: "http://127.0.0.1"}]}
  - {id: short, routes: [chat, completions], context_length: 8192, max_output_length: 1000, default_max_tokens: 64, upstreams: [{url: "http://127.0.0.1"}]}
  - {id: later, placeholder: true}
  - {id: away, routes: [chat, completions], context_length: 100, max_output_length: 100, max_choices: 3, max_prompts: 2, fields: [guided_json], upstreams: [{url: "http://127.0.0.1"}, {url: "http://10.0.0.1"}]}
  - {id: old, routes: [completions], context_length: 8192, max_output_length: 1000, upstreams: [{url: "http://127.0.0.1"}]}
`

func caller(t testing.TB) request.Caller {
	t.Helper()
	known, err := catalog.Parse([]byte(rows), "gen")
	if err != nil {
		t.Fatal(err)
	}
	return request.Caller{Find: known.Inference}
}

const hello = `"messages":[{"role":"user","content":"hi"}]`

func chat(slug string, members ...string) string {
	return "{" + strings.Join(append([]string{`"model":"` + slug + `"`, hello}, members...), ",") + "}"
}

func completion(slug string, members ...string) string {
	return "{" + strings.Join(append([]string{`"model":"` + slug + `"`, `"prompt":"hi"`}, members...), ",") + "}"
}

// forwarded returns the request as sent to an upstream that uses the model's id.
func forwarded(t *testing.T, route catalog.Route, body string, who request.Caller) (string, *request.Request) {
	t.Helper()
	r, problem := request.Parse(route, []byte(body), who)
	if problem != nil {
		t.Fatalf("%s: rejected with %d %s %q: %s", body, problem.Status, problem.Code, problem.Param, problem.Message)
	}
	text := string(r.Body(jsonedit.Quote(r.Model.ID)).Bytes())
	if !json.Valid([]byte(text)) {
		t.Fatalf("%s: forwarded as %s, which is not JSON", body, text)
	}
	return text, r
}

func TestMaxTokensIsClamped(t *testing.T) {
	for _, c := range []struct {
		name, slug string
		tier       int
		sent, want string
	}{
		{"forwarded as sent", "plain", 0, `"max_tokens":10`, `"max_tokens":10`},
		{"at the model's limit", "plain", 0, `"max_tokens":1000`, `"max_tokens":1000`},
		{"clamped to the model's limit", "plain", 0, `"max_tokens":1001`, `"max_tokens":1000`},
		{"clamped to the tier's limit", "plain", 50, `"max_tokens":51`, `"max_tokens":50`},
		{"the smaller of both", "plain", 5000, `"max_tokens":5001`, `"max_tokens":1000`},
		{"beyond integers", "plain", 0, `"max_tokens":99999999999999999999999`, `"max_tokens":1000`},
		{"the other name", "plain", 0, `"max_completion_tokens":7`, `"max_tokens":7`},
		{"the other name, clamped", "plain", 0, `"max_completion_tokens":70000`, `"max_tokens":1000`},
		{"max_completion_tokens wins", "plain", 0, `"max_tokens":9,"max_completion_tokens":7`, `"max_tokens":7`},
		{"in any order", "plain", 0, `"max_completion_tokens":7,"max_tokens":9`, `"max_tokens":7`},
		{"wins even if it is greater", "plain", 0, `"max_completion_tokens":9,"x":1,"max_tokens":7`, `"max_tokens":9,"x":1`},
		{"null is absent", "plain", 0, `"max_completion_tokens":null,"max_tokens":7`, `"max_tokens":7`},
		{"both null", "plain", 0, `"max_tokens":null,"max_completion_tokens":null`, ``},
		{"neither: nothing is added", "plain", 50, ``, ``},
		{"neither: the row's default", "short", 0, ``, `"max_tokens":64`},
		{"the row's default under the tier's limit", "short", 50, ``, `"max_tokens":50`},
		{"the row's default instead of null", "short", 0, `"max_tokens":null`, `"max_tokens":64`},
		{"the row's default is not needed", "short", 0, `"max_tokens":100`, `"max_tokens":100`},
		{"the row's name", "modern", 0, `"max_tokens":7`, `"max_completion_tokens":7`},
		{"the row's name, sent by the caller", "modern", 0, `"max_completion_tokens":7,"max_tokens":5`, `"max_completion_tokens":7`},
		{"a custom name", "cpp", 0, `"max_tokens":7`, `"n_predict":7`},
		{"a custom name, sent by the caller", "cpp", 0, `"n_predict":5000`, `"n_predict":1000`},
		{"a custom name with the usual one", "cpp", 0, `"n_predict":5000,"max_tokens":7`, `"n_predict":7`},
		{"the name of another row", "plain", 0, `"n_predict":5000`, `"n_predict":5000`},
		{"an escaped name is the name", "plain", 0, `"max\u005ftokens":5000`, `"max\u005ftokens":1000`},
	} {
		t.Run(c.name, func(t *testing.T) {
			who := caller(t)
			who.MaxTokens = c.tier
			routes := map[catalog.Route]func(string, ...string) string{catalog.Chat: chat}
			if m, _ := who.Find(c.slug); m.Serves(catalog.Completions) {
				routes[catalog.Completions] = completion
			}
			for route, form := range routes {
				got, _ := forwarded(t, route, form(c.slug, nonEmpty(c.sent)...), who)
				if want := form(c.slug, nonEmpty(c.want)...); got != want {
					t.Errorf("%s: forwarded %s, want %s", route, got, want)
				}
			}
		})
	}
}

func nonEmpty(members string) []string {
	if members == "" {
		return nil
	}
	return []string{members}
}

// Each case is named after its rule in docs/contract/gateway.md#reasoning.
func TestReasoningRulesApply(t *testing.T) {
	const format = `"response_format":{"type":"json_object"}`
	for _, c := range []struct{ name, slug, sent, want string }{
		{"1: moved into the template options", "thinker",
			`"reasoning_effort":"high","x":1`, `"x":1,"chat_template_kwargs":{"reasoning_effort":"high"}`},
		{"1: added to the caller's options", "thinker",
			`"chat_template_kwargs":{"a": 1},"reasoning_effort":"high"`, `"chat_template_kwargs":{"a": 1,"reasoning_effort":"high"}`},
		{"1: into an empty object", "thinker",
			`"reasoning_effort":"high","chat_template_kwargs":{ }`, `"chat_template_kwargs":{"reasoning_effort":"high" }`},
		{"1: instead of null", "thinker",
			`"reasoning_effort":"high","chat_template_kwargs":null`, `"chat_template_kwargs":{"reasoning_effort":"high"}`},
		{"1: instead of an inner null", "thinker",
			`"reasoning_effort":"high","chat_template_kwargs":{"reasoning_effort":null,"a":1}`, `"chat_template_kwargs":{"reasoning_effort":"high","a":1}`},
		{"1: not for another family", "plain", `"reasoning_effort":"high"`, `"reasoning_effort":"high"`},
		{"1: null is absent", "thinker", `"reasoning_effort":null`, ``},
		{"2: xhigh is max", "thinker", `"reasoning_effort":"xhigh"`, `"chat_template_kwargs":{"reasoning_effort":"max"}`},
		{"2: with escapes", "thinker", `"reasoning_effort":"\u0078high"`, `"chat_template_kwargs":{"reasoning_effort":"max"}`},
		{"2: not for another family", "plain", `"reasoning_effort":"xhigh"`, `"reasoning_effort":"xhigh"`},
		{"3: max", "thinker", `"reasoning_effort":"max"`, `"chat_template_kwargs":{"reasoning_effort":"max"}`},
		{"3: minimal, literally", "thinker", `"reasoning_effort":"minimal"`, `"chat_template_kwargs":{"reasoning_effort":"minimal"}`},
		{"3: low, literally", "thinker", `"reasoning_effort":"low"`, `"chat_template_kwargs":{"reasoning_effort":"low"}`},
		{"3: medium, literally", "thinker", `"reasoning_effort":"medium"`, `"chat_template_kwargs":{"reasoning_effort":"medium"}`},
		{"4: an explicit one is kept and the field unchanged", "thinker",
			`"reasoning_effort":"xhigh","chat_template_kwargs":{"reasoning_effort":"low"}`, `"reasoning_effort":"xhigh","chat_template_kwargs":{"reasoning_effort":"low"}`},
		{"4: kept verbatim", "thinker", `"chat_template_kwargs":{"reasoning_effort":"xhigh"}`, `"chat_template_kwargs":{"reasoning_effort":"xhigh"}`},
		{"5: forwarded", "plain", `"chat_template_kwargs":{"enable_thinking":false}`, `"chat_template_kwargs":{"enable_thinking":false}`},
		{"6: forwarded", "plain", `"chat_template_kwargs":{"drop_thinking":true}`, `"chat_template_kwargs":{"drop_thinking":true}`},
		{"7: injected", "plain", format, format + `,"chat_template_kwargs":{"enable_thinking":false}`},
		{"7: added to other options", "plain", format + `,"chat_template_kwargs":{"drop_thinking":true}`, format + `,"chat_template_kwargs":{"drop_thinking":true,"enable_thinking":false}`},
		{"7: the caller's wins", "plain", format + `,"chat_template_kwargs":{"enable_thinking":true}`, format + `,"chat_template_kwargs":{"enable_thinking":true}`},
		{"7: null counts as absent", "plain", format + `,"chat_template_kwargs":{"enable_thinking":null}`, format + `,"chat_template_kwargs":{"enable_thinking":false}`},
		{"7: not for text", "plain", `"response_format":{"type":"text"}`, `"response_format":{"type":"text"}`},
		{"7: for formats of other types", "plain", `"response_format":{"type":"regex"}`, `"response_format":{"type":"regex"},"chat_template_kwargs":{"enable_thinking":false}`},
		{"7: not without response_format", "plain", `"response_format":null`, ``},
		{"7: not if the upstream accepts none", "bare", format, format},
		{"forwarded even if the upstream accepts none", "bare", `"chat_template_kwargs":{"a":1}`, `"chat_template_kwargs":{"a":1}`},
		{"1 and 7 together", "thinker", `"reasoning_effort":"max",` + format,
			format + `,"chat_template_kwargs":{"reasoning_effort":"max","enable_thinking":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := forwarded(t, catalog.Chat, chat(c.slug, c.sent), caller(t))
			if want := chat(c.slug, nonEmpty(c.want)...); got != want {
				t.Errorf("forwarded %s, want %s", got, want)
			}
		})
	}
}

func TestStreamRequestsUsage(t *testing.T) {
	for _, c := range []struct {
		name, slug, sent, want string
		asked                  bool
	}{
		{"on the caller's behalf", "plain", `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, false},
		{"with other options", "plain", `"stream":true,"stream_options":{"a":[1]}`, `"stream":true,"stream_options":{"a":[1],"include_usage":true}`, false},
		{"in an empty object", "plain", `"stream_options":{},"stream":true`, `"stream_options":{"include_usage":true},"stream":true`, false},
		{"instead of null", "plain", `"stream_options":null,"stream":true`, `"stream_options":{"include_usage":true},"stream":true`, false},
		{"instead of false", "plain", `"stream":true,"stream_options":{"include_usage":false}`, `"stream":true,"stream_options":{"include_usage":true}`, false},
		{"by the caller", "plain", `"stream":true,"stream_options":{"include_usage":true}`, `"stream":true,"stream_options":{"include_usage":true}`, true},
		{"not without a stream", "plain", `"stream":false`, `"stream":false`, false},
		{"not if stream is null", "plain", `"stream":null`, ``, false},
		{"not if the upstream accepts no options", "bare", `"stream":true`, `"stream":true`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, r := forwarded(t, catalog.Chat, chat(c.slug, c.sent), caller(t))
			if want := chat(c.slug, nonEmpty(c.want)...); got != want || r.IncludeUsage != c.asked {
				t.Errorf("forwarded %s (asked: %v), want %s (%v)", got, r.IncludeUsage, want, c.asked)
			}
			if r.Stream != strings.Contains(c.sent, `"stream":true`) {
				t.Errorf("stream is %v", r.Stream)
			}
		})
	}
}

func TestOtherFieldsAreForwardedUnchanged(t *testing.T) {
	body := ` { "seed" : 1.50e+3 , "model":"plain","messages" : [ {"content":"\u00e9\/","role":"user","name":"x"} ],` +
		`"logit_bias":{"5":-100.0},"b":[1.0,1,10000000000000000000001],"a":null,"n":2,"min_p":0.10,"é":"☃" } `
	got, r := forwarded(t, catalog.Chat, body, caller(t))
	if got != body {
		t.Errorf("forwarded %s, want it unchanged", got)
	}
	if got := string(r.Body(jsonedit.Quote(`Org/"Model"`)).Bytes()); got != strings.Replace(body, `"plain"`, `"Org/\"Model\""`, 1) {
		t.Errorf("forwarded %s under the upstream's name", got)
	}
	// Fields of the other route have no meaning here.
	body = completion("plain", `"messages":5`, `"reasoning_effort":1`, `"response_format":7`, `"tools":""`,
		`"chat_template_kwargs":[]`)
	if got, _ := forwarded(t, catalog.Completions, body, caller(t)); got != body {
		t.Errorf("forwarded %s, want %s", got, body)
	}
	body = chat("plain", `"prompt":5`, `"ignore_eos":"x"`)
	if got, _ := forwarded(t, catalog.Chat, body, caller(t)); got != body {
		t.Errorf("forwarded %s, want %s", got, body)
	}
}

// A null member is removed with its comma, wherever it is.
func TestNullMeansAbsent(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{`{"stop":null,"model":"plain",` + hello + `}`, `{"model":"plain",` + hello + `}`},
		{`{"stop":null, "tools":null , "model":"plain",` + hello + `}`, `{"model":"plain",` + hello + `}`},
		{`{"model":"plain", "stop":null, "top_p":null , ` + hello + `}`, `{"model":"plain" , ` + hello + `}`},
		{`{"model":"plain",` + hello + `, "stop":null,"tools":null }`, `{"model":"plain",` + hello + ` }`},
		{`{"stop":null,"model":"plain","tools":null,` + hello + `,"top_p":null}`, `{"model":"plain",` + hello + `}`},
		{`{"model":"short",` + hello + `,"max_tokens":null,"stream":null}`, `{"model":"short",` + hello + `,"max_tokens":64}`},
		{`{"model":"plain",` + hello + `,"n":null}`, `{"model":"plain",` + hello + `,"n":null}`},
	} {
		if got, _ := forwarded(t, catalog.Chat, c.sent, caller(t)); got != c.want {
			t.Errorf("%s: forwarded %s, want %s", c.sent, got, c.want)
		}
	}
}

func TestPromptTextsAreFound(t *testing.T) {
	for _, c := range []struct {
		route      catalog.Route
		body, want string
		tokens     int
	}{
		{catalog.Completions, `{"model":"plain","prompt":"a\nb"}`, "a\nb", 0},
		{catalog.Completions, `{"model":"plain","prompt":["a","\"b\""]}`, `a|"b"`, 0},
		{catalog.Completions, `{"model":"plain","prompt":[1, 2,3]}`, "", 3},
		{catalog.Completions, `{"model":"plain","prompt":[[1,2],[3],[]]}`, "", 3},
		{catalog.Chat, chat("plain"), "hi", 4},
		{catalog.Chat, `{"model":"plain","messages":[{"role":"system","content":"a"},{"content":[{"type":"text",` +
			`"text":"b\t"},{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"c"}],"role":"user"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]}]}`, "a|b\t|c|" + `[{"id":"1"}]`, 1012},
		{catalog.Chat, chat("plain", `"tools":[{"type":"function"}]`), `hi|[{"type":"function"}]`, 4},
		{catalog.Chat, `{"model":"plain","messages":[{"role":"assistant","content":"a","reasoning_content":"b","name":"c"}],` +
			`"user":"u","metadata":{"k":"v"},"stop":"s","response_format":{"type":"text"},"chat_template_kwargs":{"documents":["d"]}}`,
			`a|b|c|{"type":"text"}|{"documents":["d"]}`, 4},
		{catalog.Completions, `{"model":"plain","prompt":"a","suffix":"b"}`, "a|b", 0},
		{catalog.Messages, `{"model":"plain","max_tokens":9,"system":"a","messages":[{"role":"user","content":[` +
			`{"type":"image","source":{"type":"base64","data":"` + strings.Repeat("A", 2<<10) + `"}},` +
			`{"type":"document","source":{"type":"text","data":"b"}}]}]}`, `a|{"type":"text","data":"b"}`, 1006},
	} {
		_, r := forwarded(t, c.route, c.body, caller(t))
		var texts []string
		tokens := r.PromptTexts(func(text []byte) { texts = append(texts, string(text)) })
		if got := strings.Join(texts, "|"); got != c.want || tokens != c.tokens {
			t.Errorf("%s: %q and %d tokens, want %q and %d", c.body, got, tokens, c.want, c.tokens)
		}
	}
}

// A prompt is read once, however deeply its texts are nested.
func TestNestedTextsAreReadOnce(t *testing.T) {
	who := caller(t)
	read := func(depth int) time.Duration {
		nested := strings.Repeat(`{"output":`, depth) + `["a"` + strings.Repeat(`,"a"`, 1<<18) + `]` + strings.Repeat(`}`, depth)
		r, problem := request.Parse(catalog.Messages, []byte(`{"model":"plain","max_tokens":9,"messages":[{"role":"user","content":[{"type":"x","content":`+nested+`}]}]}`), who)
		if problem != nil {
			t.Fatal(problem.Message)
		}
		texts, began := 0, time.Now()
		r.PromptTexts(func([]byte) { texts++ })
		if texts != 1<<18+1 {
			t.Errorf("%d texts", texts)
		}
		return time.Since(began)
	}
	if flat, deep := min(read(1), read(1), read(1)), min(read(120), read(120), read(120)); deep > 20*flat {
		t.Errorf("texts in one list take %v, in 120 nested lists %v", flat, deep)
	}
}

// Some languages have no integers and write 5 as 5.0.
func TestIntegersWithADecimalPointAreAccepted(t *testing.T) {
	for _, c := range []struct {
		route      catalog.Route
		sent, want string
	}{
		{catalog.Chat, chat("plain", `"max_tokens":5.0`), chat("plain", `"max_tokens":5`)},
		{catalog.Chat, chat("plain", `"max_completion_tokens": 5.000`), chat("plain", `"max_tokens": 5`)},
		{catalog.Chat, chat("plain", `"max_tokens":99999999999999.0`), chat("plain", `"max_tokens":1000`)},
		{catalog.Chat, chat("cpp", `"n_predict":7.0`), chat("cpp", `"n_predict":7`)},
		{catalog.Chat, chat("plain", `"n":2.0`), chat("plain", `"n":2`)},
		{catalog.Completions, completion("plain", `"max_tokens":0.0`), completion("plain", `"max_tokens":0`)},
		{catalog.Completions, completion("plain", `"max_tokens":-0.0`), completion("plain", `"max_tokens":0`)},
		{catalog.Completions, completion("plain", `"best_of":3.0`), completion("plain", `"best_of":3`)},
	} {
		if got, _ := forwarded(t, c.route, c.sent, caller(t)); got != c.want {
			t.Errorf("%s: forwarded %s, want %s", c.sent, got, c.want)
		}
	}
}

func TestCommonFieldsAreForwarded(t *testing.T) {
	who := caller(t)
	for _, body := range []string{
		chat("away", `"audio":{},"frequency_penalty":0,"function_call":"auto","functions":[],"logit_bias":{},"logprobs":true`,
			`"max_completion_tokens":1,"metadata":{},"modalities":["text"],"n":1,"parallel_tool_calls":true,"prediction":{}`,
			`"presence_penalty":0,"prompt_cache_key":"k","prompt_cache_retention":"24h","reasoning_effort":"low"`,
			`"response_format":{"type":"text"},"safety_identifier":"s","seed":1,"service_tier":"auto","stop":"x","store":false`,
			`"stream":false,"stream_options":{},"temperature":1,"tool_choice":"auto","tools":[],"top_logprobs":2,"top_p":1`,
			`"user":"u","verbosity":"low","web_search_options":{},"chat_template_kwargs":{"chat_template":"verbatim"}`),
		chat("away",
			`"top_k":40,"min_p":0.05,"repetition_penalty":1.1,"min_tokens":1,"stop_token_ids":[1],"skip_special_tokens":true`,
			`"ignore_eos":true,"enable_thinking":false,"thinking":{},"include_reasoning":true,"bad_words":[]`),
	} {
		if _, problem := request.Parse(catalog.Chat, []byte(body), who); problem != nil {
			t.Errorf("%s: %s", body, problem.Message)
		}
	}
	body := completion("away",
		`"best_of":2,"echo":true,"logit_bias":{},"logprobs":5,"n":2,"seed":1,"suffix":"s","user":"u","ignore_eos":true`)
	if _, problem := request.Parse(catalog.Completions, []byte(body), who); problem != nil {
		t.Errorf("%s: %s", body, problem.Message)
	}
}

// A field that affects more than the caller's own completion must be permitted by the row.
func TestRowLimitsFields(t *testing.T) {
	for _, name := range []string{
		"chat_template", "id_slot", "priority", "guided_regex", "guided_decoding_backend", "structured_outputs", "grammar",
		"logits_processors", "cache_salt", "cache_prompt", "mm_processor_kwargs", "lora", "lora_adapter", "n_predict",
		"prompt_logprobs",
		"truncate_prompt_tokens", "use_beam_search", "kv_transfer_params", "vllm_xargs", "request_id", "slot_id",
		"t_max_predict_ms",
		"samplers", "keep_alive", "options", "documents", "add_generation_prompt", "continue_final_message", "extra_body",
		"provider", "plugins", "\u0063hat_template", "CHAT_TEMPLATE", "",
	} {
		plain := strings.ReplaceAll(name, "\\u0063", "c")
		for route, text := range map[catalog.Route]string{catalog.Chat: chat("away", `"`+name+`":1`),
			catalog.Completions: completion("away", `"`+name+`":1`)} {
			_, problem := request.Parse(route, []byte(text), caller(t))
			if problem == nil || problem.Status != 400 || problem.Code != apierror.UnknownParameter || problem.Param != plain {
				t.Errorf("%s: got %+v, want a rejection", text, problem)
			}
			open := strings.Replace(text, "away", "plain", 1)
			if got, _ := forwarded(t, route, open, caller(t)); got != open {
				t.Errorf("%s became %s for a server on this machine", open, got)
			}
		}
	}
	body := chat("away", `"guided_json":{"a":1.0}`)
	if got, _ := forwarded(t, catalog.Chat, body, caller(t)); got != body {
		t.Errorf("%s became %s although the row lists the field", body, got)
	}
}

func TestPromptsLongerThanTheContextAreRejected(t *testing.T) {
	who := caller(t)
	const longest = 100 * 256 // the maximum size of 100 tokens, in bytes
	text := func(n int) string { return `"` + strings.Repeat("a", n) + `"` }
	ids := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	for _, c := range []struct {
		name  string
		route catalog.Route
		body  string
		fits  bool
	}{
		{"ids", catalog.Completions, `{"model":"away","prompt":` + ids(100) + `}`, true},
		{"an id too many", catalog.Completions, `{"model":"away","prompt":` + ids(101) + `}`, false},
		{"ids, each within", catalog.Completions, `{"model":"away","prompt":[` + ids(100) + `,` + ids(100) + `]}`, true},
		{"ids, one beyond", catalog.Completions, `{"model":"away","prompt":[` + ids(1) + `,` + ids(101) + `]}`, false},
		{"text", catalog.Completions, `{"model":"away","prompt":` + text(longest) + `}`, true},
		{"long text", catalog.Completions, `{"model":"away","prompt":` + text(longest+256) + `}`, false},
		{"texts, each within", catalog.Completions, `{"model":"away","prompt":[` + text(longest) + `,` + text(longest) + `]}`, true},
		{"texts, one beyond", catalog.Completions, `{"model":"away","prompt":[` + text(longest+256) + `,"x"]}`, false},
		{"escapes", catalog.Completions, `{"model":"away","prompt":"` + strings.Repeat(`\u0041`, longest) + `"}`, true},
		{"a chat", catalog.Chat, `{"model":"away","messages":[{"role":"user","content":` + text(longest) + `}]}`, true},
		{"a long chat", catalog.Chat, `{"model":"away","messages":[{"role":"user","content":` + text(longest) + `},{"role":"user","content":[{"type":"text","text":` + text(256) + `}]}]}`, false},
		{"an image", catalog.Chat, `{"model":"away","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":` + text(4*longest) + `}}]}]}`, true},
		{"tools that a template may drop", catalog.Chat, chat("away", `"tools":[{"x":`+text(4*longest)+`}]`), true},
	} {
		_, problem := request.Parse(c.route, []byte(c.body), who)
		if c.fits && problem != nil ||
			!c.fits && (problem == nil || problem.Status != 400 || problem.Code != apierror.ContextExceeded) {
			t.Errorf("%s: got %+v", c.name, problem)
		}
	}
}
