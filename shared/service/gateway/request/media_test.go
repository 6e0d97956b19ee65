package request_test

import (
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/request"
)

// The token count of an image given by URL is unknown, so a budget reserves the entire context.
func TestMediaIsDetected(t *testing.T) {
	t.Parallel()
	who := caller(t)
	who.Row, _ = who.Find("plain") // this test does not check the model's routes
	for _, c := range []struct {
		route catalog.Route
		body  string
		want  bool
	}{
		{catalog.Chat, `"messages":[{"role":"user","content":"an \"image_url\" and a \"file\""}]`, true},
		{catalog.Chat, `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`, true},
		{catalog.Chat, `"messages":[{"role":"user","content":[{"type":"\u0074ext","text":"hi"}]}]`, true},
		{catalog.Chat, `"messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function",` +
			`"function":{"name":"f","arguments":"{\"file\":1}"}}]}],"tools":[{"type":"function","function":` +
			`{"name":"f","parameters":{"type":"object","properties":{"file":{"type":"string"}}}}}]`, true},
		{catalog.Chat, `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]`, false},
		{catalog.Chat, `"messages":[{"role":"user","content":[{"type":"\u0069mage_url","\u0069mage_url":{}}]}]`, false},
		{catalog.Chat, `"messages":[{"role":"user","content":[{"\u0074ype":"\u0069mage_url"}]}]`, false},
		{catalog.Chat, `"messages":[{"role":"user","content":[{"type":"text","text":"hi","\u0069mage_url":{}}]}]`, false},
		{catalog.Chat, `"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"novel"}]}]`, false},
		{catalog.Chat, `"messages":[{"role":"assistant","content":"hi","\u0061udio":{"id":"a"}}]`, false},
		{catalog.Chat, `"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"\u0066ile_search"}]`, false},
		{catalog.Messages, `"max_tokens":5,"messages":[{"role":"user","content":"hi"}]`, true},
		{catalog.Messages, `"max_tokens":5,"system":[{"type":"text","text":"hi"}],"messages":[{"role":"assistant","content":` +
			`[{"type":"tool_use","id":"1","name":"f","input":{"type":"image","file":1}}]},{"role":"user","content":` +
			`[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"hi"}]}]}]`, true},
		{catalog.Messages, `"max_tokens":5,"messages":[{"role":"user","content":[{"type":"\u0069mage","source":{}}]}]`, false},
		{catalog.Messages, `"max_tokens":5,"messages":[{"role":"user","content":` +
			`[{"type":"tool_result","tool_use_id":"1","\u0063ontent":[{"type":"\u0069mage","source":{}}]}]}]`, false},
		{catalog.Messages, `"max_tokens":5,"system":[{"type":"\u0069mage"}],"messages":[{"role":"user","content":"hi"}]`, false},
		{catalog.Responses, `"input":"hi"`, true},
		{catalog.Responses, `"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},` +
			`{"type":"function_call_output","call_id":"1","output":"{\"file\":1}"}]`, true},
		{catalog.Responses, `"input":[{"role":"user","content":[{"type":"\u0069nput_image"}]}]`, false},
		{catalog.Responses, `"input":[{"type":"function_call_output","call_id":"1","output":[{"type":"input_\u0066ile"}]}]`, false},
		{catalog.Responses, `"input":[{"type":"item_reference","id":"i"}]`, false},
		{catalog.Completions, `"prompt":["hi"]`, true},
		{catalog.Embeddings, `"input":["hi"]`, true},
		{catalog.Rerank, `"query":"hi","documents":["hi",{"text":"hi"}]`, true},
		{catalog.Rerank, `"query":"hi","documents":["hi",{"\u0069mage_url":"https://e/p"}]`, false},
		{catalog.Score, `"text_1":"hi","text_2":{"content":[{"type":"\u0069mage_url"}]}`, false},
	} {
		r, problem := request.Parse(c.route, []byte(`{"model":"plain",`+c.body+`}`), who)
		if problem != nil {
			t.Errorf("%s: %v", c.body, problem)
		} else if r.TextOnly != c.want {
			t.Errorf("%s %s: text only is %v", c.route, strings.ReplaceAll(c.body, "\n", ""), r.TextOnly)
		}
	}
}
