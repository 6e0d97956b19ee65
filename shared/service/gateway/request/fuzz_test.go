package request_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/request"
	"cutroom/shared/testkit/conformance"
)

// An accepted request is forwarded as valid JSON. Fields outside the contract keep their bytes and
// order, and parsing the result again changes nothing.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		chat("plain", `"stream":true,"x":[1.0,{"y":null}]`),
		chat("thinker", `"reasoning_effort":"xhigh","response_format":{"type":"text"},"chat_template_kwargs":{"a":1}`),
		chat("short", `"max_tokens":null,"stop":["a"],"stream_options":null,"stream":true`),
		chat("cpp", `"n_predict":5,"max_completion_tokens":9999`),
		completion("plain", `"max_tokens":5000,"max_completion_tokens":1,"top_p":null`),
		chat("away", `"n":2.0,"best_of":null,"chat_template":"x","top_k":5.0`),
		chat("plain", `"max_tokens":5.00,"response_format":{"type":"regex"},"tool_choice":{"type":"custom"},"n":3`),
		`{"prompt":[[1],[2]],"stop":null,"model":"plain"}`,
		`{"models":["plain","short"],"prompt":"x","model":"plain","max_tokens":5.0}`,
		`{"tools":null,"model":"modern","messages":[{"content":[{"type":"text","text":"\u0000"}],"role":"user"}],` +
			`"max_tokens":7}`,
	} {
		f.Add([]byte(seed))
	}
	who := caller(f)
	who.MaxTokens = 100
	f.Fuzz(func(t *testing.T, sent []byte) {
		for _, route := range []catalog.Route{catalog.Chat, catalog.Completions} {
			r, problem := request.Parse(route, sent, who)
			if problem != nil {
				if !json.Valid(problem.JSON()) {
					t.Fatalf("the error is not JSON: %s", problem.JSON())
				}
				continue
			}
			got := r.Body(jsonedit.Quote(r.Model.ID)).Bytes()
			before, after := unnamed(t, route, sent), unnamed(t, route, got)
			if diff := conformance.Diff(before, after); diff != "" {
				t.Fatalf("%s became %s: the fields differ (-before +after):\n%s", sent, got, diff)
			}
			var limits map[string]json.RawMessage
			if err := json.Unmarshal(got, &limits); err != nil {
				t.Fatalf("%s became %s: %v", sent, got, err)
			}
			for _, name := range []string{"max_tokens", "max_completion_tokens", r.Model.MaxTokensField} {
				limit, there := limits[name]
				if n, err := strconv.Atoi(string(limit)); there && (err != nil || n > 100 || name != r.Model.MaxTokensField) {
					t.Fatalf("%s became %s, with %s of %s", sent, got, name, limit)
				}
			}
			again, problem := request.Parse(route, got, who)
			if problem != nil {
				t.Fatalf("%s became %s, which is rejected: %s", sent, got, problem.Message)
			}
			if twice := again.Body(jsonedit.Quote(r.Model.ID)).Bytes(); string(twice) != string(got) {
				t.Fatalf("%s became %s and then %s", sent, got, twice)
			}
			r.PromptTexts(func([]byte) {})
		}
	})
}

// FuzzParseDialects is like FuzzParse, for the routes that the contract does not cover, within their limits.
func FuzzParseDialects(f *testing.F) {
	for _, seed := range []string{
		`{"model":"plain","max_tokens":5000,"messages":[{"role":"user","content":"x"}],"temperature":null}`,
		`{"store":null,"model":"plain","input":[{"role":"user"}],"max_output_tokens":7.0,"background":false}`,
		`{"input":"x","model":"cpp","previous_response_id":null,"n_predict":5}`,
		`{"model":"vectors","input":[[1],[2]],"dimensions":5}`,
		`{"model":"vectors","query":"q","documents":["a",{"text":"b"}]}`,
		`{"model":"vectors","text_1":null,"text_1":"a","text_2":["b"]}`,
	} {
		f.Add([]byte(seed))
	}
	who := caller(f)
	who.MaxTokens = 100
	find := who.Find
	vectors := &catalog.Inference{
		ID: "vectors", Routes: []catalog.Route{catalog.Embeddings, catalog.Rerank, catalog.Score}, ContextLength: 64, AnyField: true,
	}
	who.Find = func(slug string) (*catalog.Inference, bool) {
		if slug == vectors.ID {
			return vectors, true
		}
		return find(slug)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		for _, route := range catalog.Routes() {
			r, problem := request.Parse(route, sent, who)
			if problem != nil {
				if !json.Valid(problem.JSON()) {
					t.Fatalf("the error is not JSON: %s", problem.JSON())
				}
				continue
			}
			got := r.Body(jsonedit.Quote(r.Model.ID)).Bytes()
			var limits struct {
				Messages  json.Number `json:"max_tokens"`
				Responses json.Number `json:"max_output_tokens"`
			}
			if route == catalog.Messages || route == catalog.Responses {
				if err := json.Unmarshal(got, &limits); err != nil {
					t.Fatalf("%s became %s: %v", sent, got, err)
				}
			}
			for _, limit := range []json.Number{limits.Messages, limits.Responses} {
				if n, err := limit.Int64(); limit != "" && (err != nil || n > 100) {
					t.Fatalf("%s: %s became %s", route, sent, got)
				}
			}
			again, problem := request.Parse(route, got, who)
			if problem != nil {
				t.Fatalf("%s: %s became %s, which is rejected: %s", route, sent, got, problem.Message)
			}
			if twice := again.Body(jsonedit.Quote(r.Model.ID)).Bytes(); string(twice) != string(got) {
				t.Fatalf("%s: %s became %s and then %s", route, sent, got, twice)
			}
			r.PromptTexts(func([]byte) {})
		}
	})
}

// unnamed returns the unchanged members outside the contract. It is independent of the gateway's code.
func unnamed(t *testing.T, route catalog.Route, body []byte) (members []string) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	if _, err := decoder.Token(); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	named := " model stream temperature top_p max_tokens max_completion_tokens stop frequency_penalty presence_penalty " +
		"stream_options n_predict n best_of models "
	if route == catalog.Chat {
		named += "messages tools tool_choice response_format reasoning_effort chat_template_kwargs "
	} else {
		named += "prompt ignore_eos "
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if !strings.Contains(named, " "+name.(string)+" ") {
			members = append(members, name.(string), string(value))
		}
	}
	if _, err := decoder.Token(); err != nil || decoder.More() {
		t.Fatalf("%s: no end (%v)", body, err)
	}
	return members
}
