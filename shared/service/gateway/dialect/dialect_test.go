package dialect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/dialect"
	"cutroom/shared/testkit/await"
)

type translation interface {
	Request(out, body []byte, row *catalog.Inference) ([]byte, *apierror.Error)
	Answer(out []byte, completion gjson.Result, counts usage.Counts) ([]byte, error)
	Chunk(out []byte, chunk gjson.Result) ([]byte, error)
	End(out []byte, counts usage.Counts) []byte
	Fail(out []byte, e *apierror.Error) []byte
	Held() int
}

func newCall() dialect.Call {
	return dialect.Call{ID: "1", Model: []byte(`"m"`), Created: 7, Send: func(out []byte) []byte { return out }, PromptTokens: func() int64 { return 8 }}
}

func newMessages() translation  { return dialect.NewMessages(newCall()) }
func newResponses() translation { return dialect.NewResponses(newCall()) }

var (
	templates   = &catalog.Inference{TemplateKwargs: true}
	noTemplates = &catalog.Inference{}
)

func TestRequestsAreTranslated(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() translation
		row  *catalog.Inference
		sent string
		want string
	}{
		{
			"an agent's turns", newMessages, templates,
			`{"model":"m","max_tokens":5,"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}],` +
				`"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"cache_control":{}}],` +
				`"tool_choice":{"type":"any","disable_parallel_tool_use":true},"messages":[{"role":"user","content":[` +
				`{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},` +
				`{"type":"image","source":{"type":"url","url":"https://a/b.png"}}]},{"role":"assistant","content":[` +
				`{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I \"look\""},` +
				`{"type":"tool_use","id":"t1","name":"f","input":{"x": "\n"}},{"type":"tool_use","id":"t2","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"},{"type":"tool_result","tool_use_id":"t2",` +
				`"is_error":true,"content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"url","url":"u"}}]},{"type":"text","text":"go on"}]}]}`,
			`{"messages":[{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"user","content":[` +
				`{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},` +
				`{"type":"image_url","image_url":{"url":"https://a/b.png"}}]},{"role":"assistant","reasoning_content":"hm",` +
				`"content":"I \"look\"","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"x\": \"\\n\"}"}},` +
				`{"id":"t2","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t1","content":"ok"},` +
				`{"role":"tool","tool_call_id":"t2","content":[{"type":"text","text":"The tool failed:\n"},{"type":"text","text":"no"}]},` +
				`{"role":"user","content":[{"type":"text","text":"From the result of the tool call t2:"},{"type":"image_url","image_url":{"url":"u"}},` +
				`{"type":"text","text":"go on"}]}],"model":"m","max_tokens":5,"tools":[{"type":"function","function":{"name":"f",` +
				`"description":"d","parameters":{"type":"object"}}}],"tool_choice":"required","parallel_tool_calls":false}`,
		},
		{
			"the rest of messages", newMessages, templates,
			`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}},` +
				`{"type":"document","title":"t","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}}]},` +
				`{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},` +
				`{"type":"tool_result","tool_use_id":"b","content":"c","is_error":true}]}],"stop_sequences":["s"],"top_k":3,"top_p":null,` +
				`"metadata":{"user_id":"u"},"service_tier":"auto","thinking":{"type":"enabled","budget_tokens":2000},"tool_choice":{"type":"tool","name":"f"},` +
				`"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}},` +
				`"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"seed":5}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"d"},{"type":"file","file":{"filename":"t","file_data":"data:application/pdf;base64,JVBE"}}]},` +
				`{"role":"assistant","content":"x"},{"role":"tool","tool_call_id":"a","content":""},{"role":"tool","tool_call_id":"b","content":"The tool failed:\nc"}],` +
				`"model":"m","max_tokens":5,"stop":["s"],"top_k":3,"user":"u","chat_template_kwargs":{"enable_thinking":true},` +
				`"tool_choice":{"type":"function","function":{"name":"f"}},"reasoning_effort":"low",` +
				`"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":true}},"seed":5}`,
		},
		{
			"thinking without a template", newMessages, noTemplates,
			`{"model":"m","messages":[],"thinking":{"type":"enabled","budget_tokens":20000}}`,
			`{"messages":[],"model":"m","reasoning_effort":"high"}`,
		},
		{
			"a text", newResponses, templates, `{"model":"m","input":"hi \u0041","stream":true,"max_output_tokens":5,"store":false}`,
			`{"messages":[{"role":"user","content":"hi \u0041"}],"model":"m","stream":true,"max_tokens":5}`,
		},
		{
			"an agent's items", newResponses, templates,
			`{"model":"m","instructions":"i","input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"d"}]},` +
				`{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:x","detail":"low"},` +
				`{"type":"input_file","filename":"f","file_data":"data:y"}]},{"type":"reasoning","id":"rs","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":null},` +
				`{"type":"message","id":"x","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]},` +
				`{"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"{\"x\":1}","status":"completed"},` +
				`{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"ok"},` +
				`{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"data:z"}]},` +
				`{"role":"developer","content":"now"},{"role":"user","content":"go on"},{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}],` +
				`"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true}],"tool_choice":{"type":"function","name":"f"},` +
				`"parallel_tool_calls":true,"reasoning":{"effort":"high","summary":"auto"},"include":["reasoning.encrypted_content"],"prompt_cache_key":"k",` +
				`"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","schema":{},"strict":true}},"metadata":{"a":"b"},"truncation":"disabled"}`,
			`{"messages":[{"role":"system","content":"i\n\nd"},{"role":"user","content":[{"type":"text","text":"look"},` +
				`{"type":"image_url","image_url":{"url":"data:x","detail":"low"}},{"type":"file","file":{"filename":"f","file_data":"data:y"}}]},` +
				`{"role":"assistant","reasoning_content":"hm","content":"a","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},` +
				`{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"ok"},` +
				`{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"t"}]},{"role":"user","content":[` +
				`{"type":"text","text":"From the result of the tool call c2:"},{"type":"image_url","image_url":{"url":"data:z"}}]},` +
				`{"role":"developer","content":"now"},{"role":"user","content":"go on"},{"role":"assistant","refusal":"no"}],"model":"m",` +
				`"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}}],` +
				`"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":true,"reasoning_effort":"high","prompt_cache_key":"k",` +
				`"verbosity":"low","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{},"strict":true}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problem := c.make().Request(nil, []byte(c.sent), c.row)
			if problem != nil {
				t.Fatal(problem.Message)
			}
			if string(got) != c.want || !json.Valid(got) {
				t.Errorf("%s\nbecame\n%s\nwant\n%s", c.sent, got, c.want)
			}
		})
	}
}

func TestUnsupportedRequestsAreRejected(t *testing.T) {
	const messages = `{"model":"m","messages":[{"role":"user","content":[%s]}]}`
	for _, c := range []struct {
		make       func() translation
		sent, want string
	}{
		{newMessages, `{"messages":5}`, "messages"},
		{newMessages, `{"messages":[{"role":"robot","content":""}]}`, "messages[0].role"},
		{newMessages, `{"messages":[{"role":"user","content":5}]}`, "messages[0].content"},
		{newMessages, `{"messages":[{"role":"user","content":"x","name":"n"}]}`, "messages[0].name"},
		{newMessages, fmt.Sprintf(messages, `5`), "messages[0].content[0]"},
		{newMessages, fmt.Sprintf(messages, `{"type":"text"},{"type":"container_upload"}`), "messages[0].content[1]"},
		{newMessages, fmt.Sprintf(messages, `{"type":"text","text":5}`), "messages[0].content[0].text"},
		{newMessages, fmt.Sprintf(messages, `{"type":"image","source":{"type":"file","file_id":"f"}}`), "messages[0].content[0].source.file_id"},
		{newMessages, fmt.Sprintf(messages, `{"type":"image","source":{"type":"base64","data":"x"}}`), "messages[0].content[0].source.media_type"},
		{newMessages, fmt.Sprintf(messages, `{"type":"document","source":{"type":"url","url":"u"}}`), "messages[0].content[0].source"},
		{newMessages, fmt.Sprintf(messages, `{"type":"tool_result"}`), "messages[0].content[0].tool_use_id"},
		{newMessages, fmt.Sprintf(messages, `{"type":"tool_result","tool_use_id":"a","content":[{"type":"search_result"}]}`), "messages[0].content[0].content[0]"},
		{newMessages, `{"messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]}]}`, "messages[0].content[0]"},
		{newMessages, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":"c"}]}]}`, "messages[0].content[0].input"},
		{newMessages, `{"messages":[],"system":[{"type":"image"}]}`, "system[0]"},
		{newMessages, `{"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, "tools[0]"},
		{newMessages, `{"messages":[],"tools":[{"input_schema":{}}]}`, "tools[0].name"},
		{newMessages, `{"messages":[],"tools":[{"name":"f","defer_loading":true}]}`, "tools[0].defer_loading"},
		{newMessages, `{"messages":[],"tool_choice":{"type":"some"}}`, "tool_choice.type"},
		{newMessages, `{"messages":[],"tool_choice":{"type":"tool"}}`, "tool_choice.name"},
		{newMessages, `{"messages":[],"stop_sequences":["a","b","c","d","e"]}`, "stop_sequences"},
		{newMessages, `{"messages":[],"stop_sequences":[5]}`, "stop_sequences[0]"},
		{newMessages, `{"messages":[],"thinking":{"type":"some"}}`, "thinking.type"},
		{newMessages, `{"messages":[],"thinking":{"type":"enabled"}}`, "thinking.budget_tokens"},
		{newMessages, `{"messages":[],"metadata":{"x":1}}`, "metadata.x"},
		{newMessages, `{"messages":[],"mcp_servers":[]}`, "mcp_servers"},
		{newMessages, `{"messages":[],"n":2}`, "n"},
		{newMessages, `{"messages":[],"response_format":{}}`, "response_format"},
		{newMessages, `{"messages":[],"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}}`, "context_management.edits[0]"},
		{newResponses, `{"input":[5]}`, "input[0]"},
		{newResponses, `{"input":[{"type":"item_reference","id":"x"}]}`, "input[0]"},
		{newResponses, `{"input":[{"role":"robot","content":""}]}`, "input[0].role"},
		{newResponses, `{"input":[{"role":"user","content":[{"type":"input_audio"}]}]}`, "input[0].content[0]"},
		{newResponses, `{"input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]}`, "input[0].content[0].file_id"},
		{newResponses, `{"input":[{"role":"user","content":[{"type":"input_file","file_url":"f"}]}]}`, "input[0].content[0]"},
		{newResponses, `{"input":[{"type":"function_call","call_id":"a","name":"b"}]}`, "input[0].arguments"},
		{newResponses, `{"input":[{"type":"function_call_output","output":"b"}]}`, "input[0].call_id"},
		{newResponses, `{"input":[{"type":"reasoning","summary":[],"encrypted_content":"x"}]}`, "input[0].encrypted_content"},
		{newResponses, `{"input":"x","instructions":5}`, "instructions"},
		{newResponses, `{"input":"x","tools":[{"type":"web_search"}]}`, "tools[0]"},
		{newResponses, `{"input":"x","tools":[{"type":"custom"}]}`, "tools[0].name"},
		{newResponses, `{"input":"x","tools":[{"type":"custom","name":"c","format":{"type":"grammar","syntax":"lark","definition":"x"}}]}`, "tools[0].format"},
		{newResponses, `{"input":[{"type":"custom_tool_call","call_id":"c","name":"n","input":{}}]}`, "input[0].input"},
		{newResponses, `{"input":"x","tool_choice":{"type":"mcp"}}`, "tool_choice"},
		{newResponses, `{"input":"x","truncation":"auto"}`, "truncation"},
		{newResponses, `{"input":"x","include":["file_search_call.results"]}`, "include[0]"},
		{newResponses, `{"input":"x","top_logprobs":"5"}`, "top_logprobs"},
		{newResponses, `{"input":"x","text":{"format":{"type":"grammar"}}}`, "text.format.type"},
		{newResponses, `{"input":"x","prompt":{"id":"p"}}`, "prompt"},
	} {
		got, problem := c.make().Request(nil, []byte(c.sent), templates)
		if problem == nil || problem.Param != c.want || problem.Status != 400 {
			t.Errorf("%s: %+v (%s), want %s", c.sent, problem, got, c.want)
		}
	}
}

const completion = `{"choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"h\"m","content":"a\n","tool_calls":[` +
	`{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": \"\\u00e9\"}"}},{"function":{"name":"g","arguments":""}}]},"finish_reason":"tool_calls"}]}`

// chunks is the same completion as a stream, with additions that a hostile server might make.
var chunks = []string{
	`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
	`{"choices":[{"index":1,"delta":{"content":"not listened to"}}]}`,
	`{"choices":[{"index":0,"delta":{"reasoning_content":"h"}}]}`,
	`{"choices":[{"index":0,"delta":{"reasoning_content":"\"m"}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"a"}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"\n"}}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"x\""}}]}}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":": \"\\u00e9\"}"}}]}}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"name":"g","arguments":""}}]}}]}`,
	`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
	`{"choices":[]}`,
}

// streamed returns the events of a stream, and checks that each event's name equals its type.
func streamed(t testing.TB, tr translation, chunks []string) (events []gjson.Result, err error) {
	t.Helper()
	var out []byte
	for _, c := range chunks {
		if out, err = tr.Chunk(out, gjson.Parse(c)); err != nil {
			out = tr.Fail(out, &apierror.Error{Status: 502, Message: "no"})
			break
		}
	}
	if err == nil {
		out = tr.End(out, usage.Counts{PromptTokens: 9, CachedTokens: 4, CompletionTokens: 5, ReasoningTokens: 1})
	}
	for _, event := range strings.Split(strings.TrimSuffix(string(out), "\n\n"), "\n\n") {
		name, data, _ := strings.Cut(event, "\ndata: ")
		if !gjson.Valid(data) || strings.Contains(data, "\n") || name != "event: "+gjson.Get(data, "type").Str {
			t.Fatalf("not an event: %s", event)
		}
		events = append(events, gjson.Parse(data))
	}
	return events, err
}

func TestMessagesResponsesAreTranslated(t *testing.T) {
	want := `[{"type":"thinking","signature":"","thinking":"h\"m"},{"type":"text","text":"a\n"},` +
		`{"type":"tool_use","id":"c1","name":"f","input":{"x": "\u00e9"}},{"type":"tool_use","id":"toolu_1_3","name":"g","input":{}}]`
	out, err := newMessages().Answer(nil, gjson.Parse(completion), usage.Counts{})
	message := gjson.ParseBytes(out)
	if err != nil || !gjson.ValidBytes(out) || message.Get("content").Raw != want || message.Get("stop_reason").Str != "tool_use" {
		t.Errorf("%v %s\nwant %s", err, out, want)
	}
	events, err := streamed(t, newMessages(), chunks)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, e := range events {
		fmt.Fprintln(&got, e.Get("type").Str, e.Get("index").Raw, e.Get("content_block").Raw, e.Get("delta").Raw)
	}
	const wantEvents = `message_start   
content_block_start 0 {"type":"thinking","signature":"","thinking":""} 
content_block_delta 0  {"type":"thinking_delta","thinking":"h"}
content_block_delta 0  {"type":"thinking_delta","thinking":"\"m"}
content_block_stop 0  
content_block_start 1 {"type":"text","text":""} 
content_block_delta 1  {"type":"text_delta","text":"a"}
content_block_delta 1  {"type":"text_delta","text":"\n"}
content_block_stop 1  
content_block_start 2 {"type":"tool_use","id":"c1","name":"f","input":{}} 
content_block_delta 2  {"type":"input_json_delta","partial_json":"{\"x\""}
content_block_delta 2  {"type":"input_json_delta","partial_json":": \"\\u00e9\"}"}
content_block_stop 2  
content_block_start 3 {"type":"tool_use","id":"toolu_1_3","name":"g","input":{}} 
content_block_stop 3  
message_delta   {"stop_reason":"tool_use","stop_sequence":null}
message_stop   
`
	if got.String() != wantEvents {
		t.Errorf("got\n%s\nwant\n%s", got.String(), wantEvents)
	}
	if used := events[len(events)-2].Get("usage").Raw; used != `{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":5}` {
		t.Error(used)
	}
}

func TestStopReasonsAreTranslated(t *testing.T) {
	for _, c := range []struct{ choice, reason, sequence, status, incomplete string }{
		{`"finish_reason":"stop"`, "end_turn", "", "completed", ""},
		{`"finish_reason":"length"`, "max_tokens", "", "incomplete", "max_output_tokens"},
		{`"finish_reason":"content_filter"`, "refusal", "", "incomplete", "content_filter"},
		{`"finish_reason":"stop","stop_reason":"END"`, "stop_sequence", "END", "completed", ""},
		{`"finish_reason":"stop","stop_reason":"other"`, "end_turn", "", "completed", ""},
		{`"finish_reason":"stop","stop_reason":128009`, "end_turn", "", "completed", ""},
	} {
		whole := gjson.Parse(`{"choices":[{"message":{"content":"x"},` + c.choice + `}]}`)
		m := newMessages()
		if _, problem := m.Request(nil, []byte(`{"messages":[],"stop_sequences":["END"]}`), templates); problem != nil {
			t.Fatal(problem)
		}
		out, _ := m.Answer(nil, whole, usage.Counts{})
		if got := gjson.ParseBytes(out); got.Get("stop_reason").Str != c.reason || got.Get("stop_sequence").Str != c.sequence {
			t.Errorf("%s: %s", c.choice, out)
		}
		out, _ = newResponses().Answer(nil, whole, usage.Counts{})
		if got := gjson.ParseBytes(out); got.Get("status").Str != c.status || got.Get("incomplete_details.reason").Str != c.incomplete {
			t.Errorf("%s: %s", c.choice, out)
		}
	}
}

func TestResponsesAreTranslated(t *testing.T) {
	const want = `[{"id":"rs_1_0","status":"completed","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"h\"m"}]},` +
		`{"id":"msg_1_1","status":"completed","type":"message","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"a\n"}]},` +
		`{"id":"fc_1_2","status":"completed","type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\": \"\\u00e9\"}"},` +
		`{"id":"fc_1_3","status":"completed","type":"function_call","call_id":"call_1_3","name":"g","arguments":""}]`
	out, err := newResponses().Answer(nil, gjson.Parse(completion), usage.Counts{})
	if err != nil || !gjson.ValidBytes(out) || gjson.GetBytes(out, "output").Raw != want {
		t.Errorf("%v %s\nwant %s", err, out, want)
	}
	r := newResponses()
	events, err := streamed(t, r, chunks)
	if err != nil {
		t.Fatal(err)
	}
	var items []string
	text := map[string]string{}
	for i, e := range events {
		if e.Get("sequence_number").Int() != int64(i) {
			t.Errorf("the number of event %d is %s", i, e.Get("sequence_number").Raw)
		}
		if delta := e.Get("delta"); delta.Exists() {
			text[e.Get("item_id").Str] += delta.Str
		}
		if e.Get("type").Str == "response.output_item.done" {
			items = append(items, e.Get("item").Raw)
		}
	}
	final := events[len(events)-1]
	if got := final.Get("response.output").Raw; got != want || "["+strings.Join(items, ",")+"]" != want {
		t.Errorf("the last event has\n%s\nthe items were\n%s", got, items)
	}
	if final.Get("type").Str != "response.completed" || final.Get("response.usage.total_tokens").Int() != 14 || r.Held() == 0 {
		t.Errorf("%s, %d held", final.Raw, r.Held())
	}
	if text["rs_1_0"] != `h"m` || text["msg_1_1"] != "a\n" || text["fc_1_2"] != `{"x": "\u00e9"}` {
		t.Errorf("%q", text)
	}
}

func TestNamespacesAreTranslated(t *testing.T) {
	r := newResponses()
	got, problem := r.Request(nil, []byte(`{"input":[{"type":"function_call","call_id":"c","namespace":"n","name":"f","arguments":"{}"}],`+
		`"tools":[{"type":"namespace","name":"n","description":"N.","tools":[{"type":"function","name":"f","description":"F.","parameters":{}}]}]}`), templates)
	const want = `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"n__f","arguments":"{}"}}]}],` +
		`"tools":[{"type":"function","function":{"name":"n__f","description":"N.\n\nF.","parameters":{}}}]}`
	if problem != nil || string(got) != want {
		t.Errorf("%v %s\nwant %s", problem, got, want)
	}
	out, err := r.Answer(nil, gjson.Parse(`{"choices":[{"message":{"tool_calls":[{"id":"d","function":{"name":"n__f","arguments":"{}"}}]}}]}`), usage.Counts{})
	if call := gjson.GetBytes(out, "output.0"); err != nil || call.Get("name").Str != "f" || call.Get("namespace").Str != "n" {
		t.Errorf("%v %s", err, out)
	}
	for sent, want := range map[string]string{
		`{"input":"x","tools":[{"type":"namespace"}]}`:                                        "tools[0].name",
		`{"input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"custom"}]}]}`: "tools[0].tools[0]",
		`{"input":"x","tools":[{"type":"namespace","name":"n","x":1}]}`:                       "tools[0].x",
	} {
		if got, problem := newResponses().Request(nil, []byte(sent), templates); problem == nil || problem.Param != want {
			t.Errorf("%s: %v %s", sent, problem, got)
		}
	}
}

// A tool with text input becomes a function with one parameter. Its calls are translated back. In the next turn, they
// are translated to function calls again.
func TestCustomToolsAreTranslated(t *testing.T) {
	const body = `{"input":[{"role":"user","content":"x"},{"type":"custom_tool_call","id":"i","call_id":"c0","name":"patch","input":"a\n\"b"},` +
		`{"type":"custom_tool_call_output","call_id":"c0","output":"ok"}],"tools":[{"type":"custom","name":"patch","description":"d","format":{"type":"text"}}],` +
		`"tool_choice":{"type":"custom","name":"patch"}}`
	const chat = `{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c0","type":"function","function":{"name":"patch",` +
		`"arguments":"{\"input\":\"a\\n\\\"b\"}"}}]},{"role":"tool","tool_call_id":"c0","content":"ok"}],"tools":[{"type":"function","function":{"name":"patch",` +
		`"description":"d","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}}],` +
		`"tool_choice":{"type":"function","function":{"name":"patch"}}}`
	for arguments, want := range map[string]string{`{\"input\": \"l1\\nl2\"}`: `"l1\nl2"`, `plain`: `"plain"`, `{\"x\":1}`: `"{\"x\":1}"`} {
		tr := newResponses()
		out, problem := tr.Request(nil, []byte(body), noTemplates)
		if problem != nil || string(out) != chat {
			t.Fatalf("%s, %v\nwant %s", out, problem, chat)
		}
		half := len(arguments) / 2
		if arguments[half-1] == '\\' {
			half++
		}
		delta := `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"patch","arguments":"%s"}}]}}]}`
		events, err := streamed(t, tr, []string{fmt.Sprintf(delta, arguments[:half]), fmt.Sprintf(delta, arguments[half:])})
		var kinds []string
		for _, event := range events[2:] {
			kinds = append(kinds, event.Get("type").Str)
		}
		item := events[len(events)-1].Get("response.output.0")
		if err != nil || fmt.Sprint(kinds) != "[response.output_item.added response.custom_tool_call_input.delta "+
			"response.custom_tool_call_input.done response.output_item.done response.completed]" ||
			item.Raw != `{"id":"ctc_1_0","status":"completed","type":"custom_tool_call","call_id":"c1","name":"patch","input":`+want+`}` ||
			events[3].Get("delta").Raw != want || events[4].Get("input").Raw != want {
			t.Errorf("%s: %v, %v, %s", arguments, err, kinds, item.Raw)
		}
	}
}

func TestLogprobsFollowTheirText(t *testing.T) {
	const chunk = `{"choices":[{"index":0,"delta":{"content":"%[1]s"},"logprobs":{"content":[{"token":"%[1]s","logprob":-0.5,"bytes":[97],"top_logprobs":[]}]}}]}`
	const token = `{"token":"%s","logprob":-0.5,"bytes":[97],"top_logprobs":[]}`
	a, b := fmt.Sprintf(token, "a"), fmt.Sprintf(token, "b")
	for asks, both := range map[string]bool{`,"include":["message.output_text.logprobs"],"top_logprobs":2`: true, `,"top_logprobs":0`: false} {
		tr := newResponses()
		out, problem := tr.Request(nil, []byte(`{"input":"x"`+asks+`}`), noTemplates)
		if problem != nil || strings.HasSuffix(string(out), `"top_logprobs":2,"logprobs":true}`) != both {
			t.Errorf("%s became %s, %v", asks, out, problem)
		}
		events, err := streamed(t, tr, []string{`{"choices":[{"delta":{"reasoning_content":"hm"},"logprobs":{"content":[` + a + `]}}]}`,
			fmt.Sprintf(chunk, "a"), fmt.Sprintf(chunk, "b"), `{"choices":[{"delta":{"content":"c"},"logprobs":{"content":[5,null]}}]}`})
		var deltas []string
		for _, event := range events {
			if event.Get("type").Str == "response.output_text.delta" {
				deltas = append(deltas, event.Get("logprobs").Raw)
			}
		}
		part := events[len(events)-1].Get("response.output.1.content.0.logprobs").Raw
		want, each := "["+a+","+b+"]", "[["+a+"] ["+b+"] []]"
		if !both {
			want, each = "[]", "[[] [] []]"
		}
		if err != nil || part != want || fmt.Sprint(deltas) != each {
			t.Errorf("%s: %v, %s, %s", asks, err, part, deltas)
		}
	}
}

// Calls remain separate even if they have the same id or index or arrive in another order.
func TestCallsGetDistinctIDs(t *testing.T) {
	call := func(index int, id, name, arguments string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%q,"function":{"name":%q,"arguments":%q}}]}}]}`,
			index, id, name, arguments)
	}
	for name, c := range map[string]struct {
		chunks []string
		want   string
	}{
		"the same id":             {[]string{call(0, "a", "f", "{}"), call(1, "a", "g", "{}")}, `a f {}, OWN_1 g {}`},
		"no id":                   {[]string{call(0, "", "f", "{}"), call(1, "", "g", "{}")}, `OWN_0 f {}, OWN_1 g {}`},
		"the same index":          {[]string{call(0, "a", "f", "{}"), call(0, "b", "g", "{"), call(0, "b", "g", "}")}, `a f {}, b g {}`},
		"a new id for each chunk": {[]string{call(0, "a", "f", "{"), call(0, "b", "", "}")}, `a f {}`},
		"interleaved":             {[]string{call(0, "a", "f", "{"), call(1, "b", "g", ""), call(2, "c", "h", "{}"), call(1, "", "", "{\"x\":"), call(0, "", "", "\"}"), call(0, "", "", "\": 1}"), call(1, "", "", "2}"), call(0, "", "", " ")}, `a f {"}": 1}, b g {"x":2}, c h {}`},
		"interleaved by id":       {[]string{call(0, "a", "f", "{"), call(0, "b", "g", "["), call(0, "a", "", "}"), call(0, "b", "", "]")}, `a f {}, b g []`},
		"never complete":          {[]string{call(0, "a", "f", ""), call(1, "b", "g", "{"), call(2, "c", "h", "x")}, `a f , b g {, c h x`},
		"backwards":               {[]string{call(2, "c", "f", "{}"), call(0, "a", "g", "")}, `c f {}, a g `},
	} {
		for dialect, tr := range map[string]translation{"messages": newMessages(), "responses": newResponses()} {
			events, err := streamed(t, tr, c.chunks)
			if err != nil {
				t.Errorf("%s, %s: %v", name, dialect, err)
			}
			var calls []string
			for _, event := range events {
				switch event.Get("type").Str {
				case "content_block_start":
					calls = append(calls, event.Get("content_block.id").Str+" "+event.Get("content_block.name").Str+" ")
				case "content_block_delta":
					calls[len(calls)-1] += event.Get("delta.partial_json").Str
				case "response.output_item.done":
					item := event.Get("item")
					calls = append(calls, item.Get("call_id").Str+" "+item.Get("name").Str+" "+item.Get("arguments").Str)
				}
			}
			own := map[string]string{"messages": "toolu_1", "responses": "call_1"}[dialect]
			if got, want := strings.Join(calls, ", "), strings.ReplaceAll(c.want, "OWN", own); got != want {
				t.Errorf("%s, %s: the calls are %s, want %s", name, dialect, got, want)
			}
		}
	}
}

func TestContinuedCallsFail(t *testing.T) {
	for _, tr := range []translation{newMessages(), newResponses()} {
		events, err := streamed(t, tr, []string{chunks[6], chunks[8], `{"choices":[{"index":0,"delta":{"content":"a"}}]}`, chunks[7]})
		if end := events[len(events)-1].Get("type").Str; err == nil || end != "error" && end != "response.failed" || tr.Held() > 1000 {
			t.Errorf("%v: %s", err, events)
		}
	}
}

// Each function repeats its namespace's name and description, which could add up to gigabytes.
func TestLongNamespacesAreRejected(t *testing.T) {
	functions := strings.TrimSuffix(strings.Repeat(`{"type":"function","name":"f"},`, 2000), ",")
	for _, member := range []string{"name", "description"} {
		body := `{"model":"m","input":"x","tools":[{"type":"namespace","` + member + `":"` + strings.Repeat("x", 1000) + `","tools":[` + functions + `]}]}`
		if out, problem := newResponses().Request(nil, []byte(body), noTemplates); problem == nil || len(out) > 8<<20 {
			t.Errorf("a long %s: %d bytes, %v", member, len(out), problem)
		}
	}
}

// Reading a namespace takes much less than await.Max, wherever its name is, because the time is not quadratic.
func TestNamespaceOfManyFunctionsIsTranslated(t *testing.T) {
	functions := strings.Repeat(`{"type":"function","name":"f"},`, 60_000)
	request := `{"input":"h","tools":[{"type":"namespace","tools":[` + strings.TrimSuffix(functions, ",") + `],"name":"x"}]}`
	translated := make(chan *apierror.Error, 1)
	go func() {
		_, problem := newResponses().Request(nil, []byte(request), noTemplates)
		translated <- problem
	}()
	if problem := await.Receive(t, "a namespace", translated); problem != nil {
		t.Error(problem)
	}
}

func TestInvalidArgumentsAreKept(t *testing.T) {
	for arguments, want := range map[string]string{
		`{\"a\":`: `{"arguments":"{\"a\":"}`, `5`: `{"arguments":"5"}`, ``: `{}`, `{\"a\":1}`: `{"a":1}`,
	} {
		out, err := newMessages().Answer(nil, gjson.Parse(`{"choices":[{"message":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"`+
			arguments+`"}}]}}]}`), usage.Counts{})
		if got := gjson.GetBytes(out, "content.0.input").Raw; err != nil || got != want {
			t.Errorf("%s: %s, %v", arguments, got, err)
		}
	}
}

// The translation of any request is JSON and contains every text of the request.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"\u0000"}]}],"tools":[{"name":"f"}]}`))
	f.Add([]byte(`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"function_call","call_id":"a","name":"b","arguments":"{}"}]}`))
	f.Add([]byte(`{"input":"x","instructions":"y","text":{"format":{"type":"json_object"}}}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"url","url":"u"}}]}]}]}`))
	f.Fuzz(func(t *testing.T, sent []byte) {
		// The gateway has parsed a request before it translates it.
		if !gjson.ValidBytes(sent) || !gjson.ParseBytes(sent).IsObject() || strings.Count(string(sent), "[")+strings.Count(string(sent), "{") > 100 {
			return
		}
		for _, tr := range []translation{newMessages(), newResponses()} {
			got, problem := tr.Request(nil, sent, templates)
			if problem != nil {
				if !json.Valid(problem.JSON()) {
					t.Fatalf("%s: the error is not JSON: %s", sent, problem.JSON())
				}
				continue
			}
			if !gjson.ValidBytes(got) {
				t.Fatalf("%s became %s", sent, got)
			}
			said := texts(gjson.ParseBytes(got).Get("messages"))
			for _, member := range []string{"messages", "input", "system", "instructions"} {
				if member == "input" && !gjson.ParseBytes(sent).Get("messages").Exists() || member != "input" {
					for _, text := range texts(gjson.ParseBytes(sent).Get(member)) {
						if _, isResponses := tr.(*dialect.Responses); isResponses == (member == "input" || member == "instructions") &&
							!strings.Contains(strings.Join(said, "\x00"), text) {
							t.Fatalf("%s became %s, without %q", sent, got, text)
						}
					}
				}
			}
		}
	})
}

// texts returns the values of all members named "text" or "content". It is independent of the translation's code.
func texts(value gjson.Result) (all []string) {
	if value.Type == gjson.String {
		return []string{value.Str}
	}
	value.ForEach(func(key, value gjson.Result) bool {
		if value.Type == gjson.String && (key.Str == "text" || key.Str == "content") || value.IsObject() || value.IsArray() {
			all = append(all, texts(value)...)
		}
		return true
	})
	return all
}

// Every translated event is JSON, and the stream always has an end.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(strings.Join(chunks, "\n")))
	f.Add([]byte(completion))
	f.Add([]byte(`{"choices":[{"delta":{"content":[{"text":"a"}],"refusal":"no","tool_calls":[{"index":5,"function":{"arguments":{"a":1}}}]},"finish_reason":"length"}]}`))
	f.Fuzz(func(t *testing.T, sent []byte) {
		var stream []string
		for _, line := range strings.Split(string(sent), "\n") {
			if gjson.Valid(line) && gjson.Parse(line).IsObject() && strings.Count(line, "[")+strings.Count(line, "{") < 100 {
				stream = append(stream, line)
			}
		}
		for _, make := range []func() translation{newMessages, newResponses} {
			events, err := streamed(t, make(), stream)
			if end := events[len(events)-1].Get("type").Str; err == nil && end != "message_stop" &&
				end != "response.completed" && end != "response.incomplete" {
				t.Fatalf("%s ends with %s", sent, end)
			}
			for _, line := range stream {
				if out, err := make().Answer(nil, gjson.Parse(line), usage.Counts{}); err == nil && !gjson.ValidBytes(out) {
					t.Fatalf("%s became %s", line, out)
				}
			}
		}
	})
}
