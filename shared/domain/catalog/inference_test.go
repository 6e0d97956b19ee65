package catalog_test

import (
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
)

func TestFirstInferenceModelIsEmbedded(t *testing.T) {
	known, err := catalog.Default("gen")
	if err != nil {
		t.Fatal(err)
	}
	models := known.InferenceModels()
	first := models[0]
	if !first.Serves(catalog.Chat) || !first.Serves(catalog.Completions) || first.Upstreams[0].URL != catalog.Embedded {
		t.Errorf("the first row is %+v", first)
	}
	placeholders := 0
	for _, m := range models {
		if m.Placeholder {
			placeholders++
			if m.Serves(catalog.Chat) || m.Serves(catalog.Completions) {
				t.Errorf("the placeholder %s serves calls", m.ID)
			}
		}
	}
	if placeholders == 0 {
		t.Error("no row is a placeholder")
	}
	for name, want := range map[string]bool{"cutroom-echo": true, "gen-2.5": true, "gen-latest": true,
		models[len(models)-1].ID: true, "gen-9": false, "": false} {
		if known.Knows(name) != want {
			t.Errorf("Knows(%q) is not %v", name, want)
		}
	}
	if _, ok := known.Find("cutroom-echo"); ok {
		t.Error("an inference model was found as a media model")
	}
	if _, ok := known.Inference("gen-2.5"); ok {
		t.Error("a media model was found as an inference model")
	}
}

// media is a catalog without inference models. Tests expect that it has seven lines.
const media = `limits: {video: {duration: 5m, width: 8, height: 8}, image: {pixels: 8}}
forms:
  f:
    fields: [{name: data, type: video}, {name: resolution, type: choice, values: [720p], default: 720p}]
models:
  - {id: a, kind: edit, form: f, fps: 20, sizes: {720p: 1280x720}}
inference:
`

const row = `  - id: org/big-model:8b
    routes: [chat]
    context_length: 4096
    max_output_length: 1024
    upstreams:
      - url: http://127.0.0.1:8000
`

func TestInferenceRowHasDefaults(t *testing.T) {
	m := parseRow(t, row)
	if m.ID != "org/big-model:8b" || m.MaxTokensField != "max_tokens" || m.Effort != catalog.EffortTopLevel ||
		!m.TemplateKwargs || !m.StreamOptions || !m.Affinity ||
		m.DefaultMaxTokens != 0 || m.Placeholder || m.Serves(catalog.Completions) || !m.Serves(catalog.Chat) ||
		m.Timeouts != (catalog.Timeouts{}) {
		t.Errorf("got %+v", m)
	}
	want := catalog.Upstream{Name: "127.0.0.1:8000", URL: "http://127.0.0.1:8000/v1", Model: "org/big-model:8b", Weight: 1}
	if m.Upstreams[0] != want {
		t.Errorf("got %+v, want %+v", m.Upstreams[0], want)
	}
}

func TestRowSetsEveryField(t *testing.T) {
	m := parseRow(t, `  - id: $family-chat
    description: A model.
    routes: [chat, completions]
    context_length: 4096
    max_output_length: 1024
    default_max_tokens: 256
    max_tokens_field: max_completion_tokens
    reasoning_effort: template
    stream_options: false
    affinity: false
    price: {input: 0.15, output: 0.6, cached: 0.03, batch: 0.5}
    timeouts: {connect: 2s, first_byte: 5m, idle: 90s}
    upstreams:
      - {name: east, url: "https://east.example/api/v3/", model: Org/Model, secret: "env:EAST_KEY", weight: 3, concurrency: 8}
      - {name: west, url: "https://west.example", secret: "secretsmanager:arn:aws:secretsmanager:eu-west-1:1:secret:x#key"}
      - {url: "embedded:"}
`)
	if m.ID != "gen-chat" || m.DefaultMaxTokens != 256 || m.MaxTokensField != "max_completion_tokens" ||
		m.Effort != catalog.EffortTemplate || m.StreamOptions || m.Affinity ||
		*m.Price != (catalog.TokenPrice{Input: 150_000, Output: 600_000, Cached: 30_000, Reasoning: 600_000, Batch: 500_000}) ||
		m.Timeouts != (catalog.Timeouts{Connect: 2 * time.Second, FirstByte: 5 * time.Minute, Idle: 90 * time.Second}) {
		t.Errorf("got %+v", m)
	}
	for i, want := range []catalog.Upstream{
		{Name: "east", URL: "https://east.example/api/v3", Model: "Org/Model", Secret: "env:EAST_KEY", Weight: 3, Concurrency: 8},
		{Name: "west", URL: "https://west.example/v1", Model: "gen-chat", Secret: "secretsmanager:arn:aws:secretsmanager:eu-west-1:1:secret:x#key", Weight: 1},
		{Name: "embedded", URL: catalog.Embedded, Model: "gen-chat", Weight: 1},
	} {
		if m.Upstreams[i] != want {
			t.Errorf("got %+v, want %+v", m.Upstreams[i], want)
		}
	}
}

func parseRow(t *testing.T, row string) *catalog.Inference {
	t.Helper()
	known, err := catalog.Parse([]byte(media+row), "gen")
	if err != nil {
		t.Fatal(err)
	}
	return known.InferenceModels()[0]
}

// The row under test follows the seven lines of media. It is on lines 8 to 13.
func TestInvalidRowNamesTheLine(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"an id with a space", "org/big-model:8b", "big model", "line 8:"},
		{"no id", "id: org/big-model:8b", "description: x", "line 8:"},
		{"a media model's name", "org/big-model:8b", "a", `line 8: inference model "a": the name already belongs`},
		{"an unknown route", "[chat]", "[chat, moderations]", `line 9: inference model "org/big-model:8b": the route "moderations"`},
		{"no routes", "    routes: [chat]\n", "", "routes must list at least one route"},
		{"no output length", "max_output_length: 1024", "max_output_length: 0", "line 11:"},
		{"an output longer than the context", "context_length: 4096", "context_length: 1000", "line 10:"},
		{"a number that is text", "max_output_length: 1024", "max_output_length: many", "[11:"},
		{"an unknown key", "    upstreams:", "    surprise: 1\n    upstreams:", "[12:"},
		{"a negative default", "    upstreams:", "    default_max_tokens: -1\n    upstreams:", "line 12:"},
		{"a field with a quote", "    upstreams:", "    max_tokens_field: 'a\"b'\n    upstreams:", "line 12:"},
		{"another reasoning family", "    upstreams:", "    reasoning_effort: deep\n    upstreams:", "line 12:"},
		{"an unknown reasoning field", "    upstreams:", "    reasoning_field: thoughts\n    upstreams:", "line 12:"},
		{"a tiny event limit", "    upstreams:", "    max_event_bytes: 4096\n    upstreams:", "line 12:"},
		{"a family without its options", "    upstreams:", "    reasoning_effort: template\n    chat_template_kwargs: false\n    upstreams:", "line 12:"},
		{"no choices", "    upstreams:", "    max_choices: 0\n    upstreams:", "line 12:"},
		{"too many prompts", "    upstreams:", "    max_prompts: 100000\n    upstreams:", "line 12:"},
		{"a field with a space", "    upstreams:", "    fields: [a, 'b c']\n    upstreams:", "line 12:"},
		{"a batch price above 1", "    upstreams:", "    price: {batch: 1.5}\n    upstreams:", "line 12:"},
		{"a negative price", "    upstreams:", "    price: {input: -1}\n    upstreams:", "line 12:"},
		{"a timeout that is not a duration", "    upstreams:", "    timeouts: {connect: 1s, idle: soon}\n    upstreams:", `line 12: inference model "org/big-model:8b": the timeout "soon"`},
		{"a timeout over the limit", "    upstreams:", "    timeouts: {first_byte: 2h}\n    upstreams:", "line 12:"},
		{"a queue without a time", "    upstreams:", "    queue: {calls: 5}\n    upstreams:", `line 12: inference model "org/big-model:8b": queue: wait ""`},
		{"a queue with a long wait", "    upstreams:", "    queue: {calls: 5, wait: 2h}\n    upstreams:", "line 12:"},
		{"a queue without places", "    upstreams:", "    queue: {wait: 5s}\n    upstreams:", "calls must be from 1 to 10000"},
		{"an unknown fallback", "    upstreams:", "    fallbacks: [nobody]\n    upstreams:", `line 12: inference model "org/big-model:8b": the fallback "nobody" is not`},
		{"a media model as a fallback", "    upstreams:", "    fallbacks: [a]\n    upstreams:", "line 12:"},
		{"a model as its own fallback", "    upstreams:", "    fallbacks: ['org/big-model:8b']\n    upstreams:", "must not be its own fallback"},
		{"an address in DNS", "http://127.0.0.1", "dns+http://127.0.0.1", "line 13:"},
		{"a service with a port", "http://127.0.0.1", "srv+http://models", "line 13:"},
		{"no upstreams", "    upstreams:\n      - url: http://127.0.0.1:8000\n", "", "no upstreams"},
		{"a placeholder with upstreams", "    upstreams:", "    placeholder: true\n    upstreams:", "a placeholder must not have upstreams"},
		{"an invalid URL", "http://127.0.0.1:8000", "127.0.0.1:8000", "line 13:"},
		{"another scheme", "http://127.0.0.1", "ftp://127.0.0.1", "line 13:"},
		{"a key in the URL", "http://127.0.0.1", "http://user:hunter2@127.0.0.1", "line 13:"},
		{"a key in the query", ":8000", ":8000/v1?key=hunter2", "line 13:"},
		{"a key instead of a secret", ":8000", ":8000\n        secret: hunter2", "line 14:"},
		{"a secret without a name", ":8000", ":8000\n        secret: \"env:\"", "line 14:"},
		{"a weight of 0", ":8000", ":8000\n        weight: 0", "line 14:"},
		{"a negative weight", ":8000", ":8000\n        weight: -1", "line 14:"},
		{"an unknown key header", ":8000", ":8000\n        key_header: cookie", "line 14:"},
		{"a version with line breaks", ":8000", ":8000\n        version: \"1\\n2\"", "line 14:"},
		{"a negative concurrency", ":8000", ":8000\n        concurrency: -1", "line 14:"},
		{"two upstreams with the same name", "      - url", "      - url: http://127.0.0.1:8000/api\n      - url", `line 14: inference model "org/big-model:8b": two upstreams`},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := media + strings.Replace(row, c.old, c.new, 1)
			if source == media+row {
				t.Fatalf("%s: the text to replace is missing", c.name)
			}
			_, err := catalog.Parse([]byte(source), "gen")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q in it", err, c.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error contains the key: %v", err)
			}
		})
	}
	if _, err := catalog.Parse([]byte(media+row+row), "gen"); err == nil || !strings.Contains(err.Error(), "line 14:") {
		t.Errorf("a duplicate slug: %v", err)
	}
}

func TestRowLimitsFieldsAndChoices(t *testing.T) {
	const local, away = "      - url: http://127.0.0.1:8000\n", "      - url: https://a.example\n"
	for _, c := range []struct {
		name, upstreams, keys string
		any, guided           bool
	}{
		{"this machine", local, "", true, true},
		{"this machine by name", "      - url: http://localhost:1\n      - url: http://[::1]:1\n      - url: 'embedded:'\n", "", true, true},
		{"this machine, with a list", local, "    fields: [guided_json]\n", false, true},
		{"this machine, with an empty list", local, "    fields: []\n", false, false},
		{"another machine", away, "", false, false},
		{"another machine in this network", "      - url: http://10.0.0.1:8000\n", "", false, false},
		{"another machine with a local-looking name", "      - url: http://localhost.example\n", "", false, false},
		{"both", local + away, "", false, false},
		{"another machine, with all", away, "    fields: ['*']\n", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parseRow(t, strings.Replace(row, "    upstreams:\n"+local, c.keys+"    upstreams:\n"+c.upstreams, 1))
			if m.AnyField != c.any || m.Takes("guided_json") != c.guided {
				t.Errorf("any field: %v, guided_json: %v", m.AnyField, m.Takes("guided_json"))
			}
			if m.MaxChoices != catalog.DefaultMaxChoices || m.MaxPrompts != catalog.DefaultMaxPrompts {
				t.Errorf("%d choices and %d prompts", m.MaxChoices, m.MaxPrompts)
			}
		})
	}
	m := parseRow(t, strings.Replace(row, "    upstreams:",
		"    max_choices: 1\n    max_prompts: 65536\n    upstreams:", 1))
	if m.MaxChoices != 1 || m.MaxPrompts != 65536 {
		t.Errorf("%d choices and %d prompts", m.MaxChoices, m.MaxPrompts)
	}
}
