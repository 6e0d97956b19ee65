package request_test

import (
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/request"
)

func parsed(t testing.TB, route catalog.Route, body string) *request.Request {
	t.Helper()
	r, problem := request.Parse(route, []byte(body), request.Caller{Find: func(slug string) (*catalog.Inference, bool) {
		return &catalog.Inference{
			ID: slug, Routes: catalog.Routes(), ContextLength: 1 << 20, MaxOutputLength: 100,
			MaxTokensField: "max_tokens", MaxChoices: 1, MaxPrompts: 8,
		}, true
	}})
	if problem != nil {
		t.Fatalf("%s: %+v", body, problem)
	}
	return r
}

// Requests of the same conversation have the same affinity. Requests of different conversations
// have different affinities.
func TestConversationKeepsItsAffinity(t *testing.T) {
	const first = `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Say \"A\"."}]}`
	long := strings.Repeat("a long text ", 3000)
	for _, test := range []struct {
		name       string
		route      catalog.Route
		one, other string
		same       bool
	}{
		{"a growing chat", catalog.Chat, first, `{"messages":[ {"content":"Be brief.","role":"system"},{"role":"user","content":"Say \"A\"."},` +
			`{"role":"assistant","content":"A"},{"role":"user","content":"Now B."}],"model":"m","temperature":0.5}`, true},
		{"a chat growing by tool calls", catalog.Chat, first,
			`{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Say \"A\"."},` +
				`{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","content":"x"}]}`, true},
		{"parts with cache marks", catalog.Chat, first,
			`{"model":"m","messages":[{"role":"system","content":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]},` +
				`{"role":"user","content":"Say \"A\"."}]}`, true},
		{"another system prompt", catalog.Chat, first, strings.Replace(first, "brief", "exact", 1), false},
		{"another first turn", catalog.Chat, first, strings.Replace(first, "Say", "Write", 1), false},
		{"another model", catalog.Chat, first, strings.Replace(first, `"m"`, `"n"`, 1), false},
		{"other text boundaries", catalog.Chat, `{"model":"m","messages":[{"role":"user","content":"ab"},{"role":"user","content":"c"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"bc"}]}`, false},
		{"a long document with another question", catalog.Chat,
			`{"model":"m","messages":[{"role":"user","content":"` + long + `One?"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"` + long + `Two?"}]}`, true},
		{"another picture", catalog.Chat,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:a"}}]}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:b"}}]}]}`, false},
		{"the same key", catalog.Chat, `{"model":"m","prompt_cache_key":"k","messages":[{"role":"user","content":"a"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"b"}],"prompt_cache_key":"k"}`, true},
		{"another key", catalog.Chat, `{"model":"m","prompt_cache_key":"k","messages":[{"role":"user","content":"a"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"a"}],"prompt_cache_key":"l"}`, false},
		{"an empty key", catalog.Chat, first, `{"prompt_cache_key":"",` + first[1:], true},
		{"a key that is not a string", catalog.Chat, first, `{"prompt_cache_key":7,` + first[1:], true},
		{"growing messages", catalog.Messages,
			`{"model":"m","max_tokens":1,"system":"S","messages":[{"role":"user","content":"a"}]}`,
			`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"x"},` +
				`{"role":"user","content":[{"type":"tool_result","content":"y"}]}],"system":[{"type":"text","text":"S"}]}`, true},
		{"messages with another system prompt", catalog.Messages,
			`{"model":"m","max_tokens":1,"system":"S","messages":[{"role":"user","content":"a"}]}`,
			`{"model":"m","max_tokens":1,"system":"T","messages":[{"role":"user","content":"a"}]}`, false},
		{"a growing response", catalog.Responses, `{"model":"m","instructions":"S","input":[{"role":"user","content":"a"}]}`,
			`{"model":"m","instructions":"S","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]},` +
				`{"type":"reasoning","content":[]},{"type":"message","role":"user","content":"z"}]}`, true},
		{"responses with other instructions", catalog.Responses, `{"model":"m","instructions":"S","input":"a"}`,
			`{"model":"m","instructions":"T","input":"a"}`, false},
		{"completions that share 2 KiB", catalog.Completions, `{"model":"m","prompt":"` + long + `b"}`,
			`{"model":"m","prompt":"` + long + `c"}`, true},
		{"other completions", catalog.Completions, `{"model":"m","prompt":"b"}`, `{"model":"m","prompt":"c"}`, false},
	} {
		one, other := parsed(t, test.route, test.one).Affinity("acme", ""), parsed(t, test.route, test.other).Affinity("acme", "")
		if one == 0 || other == 0 || (one == other) != test.same {
			t.Errorf("%s: %x and %x", test.name, one, other)
		}
	}
	r := parsed(t, catalog.Chat, first)
	if r.Affinity("acme", "") == r.Affinity("rival", "") {
		t.Error("two accounts have the same affinity")
	}
	named := parsed(t, catalog.Chat, `{"prompt_cache_key":"k",`+first[1:])
	if r.Affinity("acme", "k") != named.Affinity("acme", "") || named.Affinity("acme", "j") != r.Affinity("acme", "j") ||
		r.Affinity("acme", "j") == r.Affinity("acme", "k") {
		t.Error("the header and prompt_cache_key differ, or the body takes precedence")
	}
	if got := parsed(t, catalog.Embeddings, `{"model":"m","input":"a"}`).Affinity("acme", "k"); got != 0 {
		t.Errorf("embeddings have the affinity %x", got)
	}
	if got := parsed(t, catalog.Chat, `{"model":"m","messages":[{"role":"assistant","content":"a"}]}`).Affinity("acme", ""); got != 0 {
		t.Errorf("a chat without a beginning has the affinity %x", got)
	}
}

// The affinity does not depend on whitespace. Reading a valid request never fails.
func FuzzAffinity(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"\"]}"},7,null,true,{"a":[[]]}]}]}`,
		` { "model" : "m" , "messages" : [ { "role" : "user" , "content" : "a" } , { "content" : [ ] , "role":"user"} ] } `,
		`{"model":"m","messages":[{"role":"user","content":"\\\\\""}],"prompt_cache_key":"\u0000"}`,
		`{"model":"m","input":[{"role":"user","content":-1.5e9},[],"x",{}],"instructions":{"a":1}}`,
		`{"model":"m","prompt":[1,2,3]}`,
	} {
		f.Add(body)
	}
	known := map[string]*catalog.Inference{}
	find := func(slug string) (*catalog.Inference, bool) {
		known[slug] = &catalog.Inference{ID: slug, Routes: catalog.Routes(), ContextLength: 1 << 20, MaxOutputLength: 9,
			MaxTokensField: "max_tokens", MaxChoices: 1, MaxPrompts: 8, AnyField: true}
		return known[slug], true
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, route := range []catalog.Route{catalog.Chat, catalog.Completions, catalog.Messages, catalog.Responses} {
			r, problem := request.Parse(route, []byte(body), request.Caller{Find: find})
			if problem != nil {
				continue
			}
			spaced, problem := request.Parse(route, []byte(" "+body+"\n"), request.Caller{Find: find})
			if problem != nil || r.Affinity("a", "") != spaced.Affinity("a", "") {
				t.Errorf("%s: %q with surrounding space has another affinity", route, body)
			}
		}
	})
}
