package request_test

import (
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/request"
)

func message(members string) string { return `{"model":"plain","messages":[{` + members + `}]}` }

func prompt(value string) string { return `{"model":"plain","prompt":` + value + `}` }

type ruling struct {
	name, body  string
	param, code string
}

func rule(t *testing.T, route catalog.Route, cases []ruling) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, problem := request.Parse(route, []byte(c.body), caller(t))
			switch {
			case c.param == "ok" && problem != nil:
				t.Errorf("%s: rejected: %s (%s)", c.body, problem.Message, problem.Param)
			case c.param == "ok":
				if got := string(r.Body(jsonedit.Quote(r.Model.ID)).Bytes()); got != c.body {
					t.Errorf("forwarded %s, want %s", got, c.body)
				}
			case problem == nil:
				t.Errorf("%s was accepted, want %s on %s", c.body, c.code, c.param)
			case problem.Status != 400 || problem.Type != apierror.InvalidRequest || problem.Param != c.param ||
				problem.Code != c.code || problem.Message == "":
				t.Errorf("%s: %d %s %s on %q (%s), want 400 %s on %q", c.body, problem.Status, problem.Type, problem.Code,
					problem.Param, problem.Message, c.code, c.param)
			}
		})
	}
}

func TestMessagesAreValidated(t *testing.T) {
	const ok = "ok"
	rule(t, catalog.Chat, []ruling{
		{"model is required", `{` + hello + `}`, "model", apierror.MissingParameter},
		{"model null is absent", `{"model":null,` + hello + `}`, "model", apierror.MissingParameter},
		{"model is a string", `{"model":5,` + hello + `}`, "model", apierror.InvalidType},
		{"model is a name", `{"model":"",` + hello + `}`, "model", apierror.InvalidValue},

		{"messages are required", `{"model":"plain"}`, "messages", apierror.MissingParameter},
		{"messages null", `{"model":"plain","messages":null}`, "messages", apierror.MissingParameter},
		{"messages are an array", `{"model":"plain","messages":{}}`, "messages", apierror.InvalidType},
		{"messages are not empty", `{"model":"plain","messages":[]}`, "messages", apierror.EmptyArray},
		{"a message is an object", `{"model":"plain","messages":[{"role":"user","content":""},"hi"]}`, "messages[1]", apierror.InvalidType},
		{"role is required", message(`"content":"x"`), "messages[0].role", apierror.MissingParameter},
		{"role is a string", message(`"role":1,"content":"x"`), "messages[0].role", apierror.InvalidType},
		{"role system", message(`"role":"system","content":"x"`), ok, ""},
		{"role user", message(`"role":"user","content":"x"`), ok, ""},
		{"role assistant", message(`"role":"assistant","content":"x"`), ok, ""},
		{"role tool", message(`"role":"tool","content":"x","tool_call_id":"c"`), ok, ""},
		{"role developer", message(`"role":"developer","content":"x"`), ok, ""},
		{"role in another case", message(`"role":"User","content":"x"`), "messages[0].role", apierror.InvalidValue},
		{"an unknown role", message(`"role":"narrator","content":"x"`), "messages[0].role", apierror.InvalidValue},
		{"content is required", message(`"role":"user"`), "messages[0].content", apierror.MissingParameter},
		{"content null", message(`"role":"user","content":null`), "messages[0].content", apierror.MissingParameter},
		{"content is text", message(`"role":"user","content":5`), "messages[0].content", apierror.InvalidType},
		{"content may be empty", message(`"role":"user","content":""`), ok, ""},
		{"content null with tool_calls", message(`"role":"assistant","content":null,"tool_calls":[{}]`), ok, ""},
		{"content absent with tool_calls", message(`"tool_calls":[{}],"role":"assistant"`), ok, ""},
		{"content absent with empty tool_calls", message(`"role":"assistant","tool_calls":[ ]`), ok, ""},
		{"content null with reasoning", message(`"role":"assistant","content":null,"reasoning_content":"x"`), ok, ""},
		{"content null with a refusal", message(`"content":null,"role":"assistant","refusal":"no"`), ok, ""},
		{"content null with audio", message(`"role":"assistant","content":null,"audio":{"id":"a"}`), ok, ""},
		{"content absent with a function_call", message(`"role":"assistant","function_call":{"name":"f","arguments":"{}"}`), ok, ""},
		{"content null in a tool message", message(`"role":"tool","content":null`), "messages[0].content", apierror.MissingParameter},
		{"content absent in another role", message(`"role":"user","tool_calls":[{}]`), "messages[0].content", apierror.MissingParameter},
		{"tool_calls are an array", message(`"role":"assistant","content":"","tool_calls":{}`), "messages[0].tool_calls", apierror.InvalidType},
		{"content as parts", message(`"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"u"}}]`), ok, ""},
		{"a part is an object", message(`"role":"user","content":["x"]`), "messages[0].content[0]", apierror.InvalidType},
		{"a part has a type", message(`"role":"user","content":[{"type":"text","text":"x"},{"text":"x"}]`), "messages[0].content[1].type", apierror.InvalidType},
		{"a text has a text", message(`"role":"user","content":[{"type":"text"}]`), "messages[0].content[0].text", apierror.InvalidType},
	})
}

func TestSamplingFieldsAreValidated(t *testing.T) {
	const ok = "ok"
	rule(t, catalog.Chat, []ruling{
		{"stream is a boolean", chat("plain", `"stream":"true"`), "stream", apierror.InvalidType},
		{"stream is not a number", chat("plain", `"stream":1`), "stream", apierror.InvalidType},

		{"temperature 0", chat("plain", `"temperature":0`), ok, ""},
		{"temperature 2", chat("plain", `"temperature":2.0`), ok, ""},
		{"temperature below 0", chat("plain", `"temperature":-0.1`), "temperature", apierror.BelowMinimum},
		{"temperature above 2", chat("plain", `"temperature":2.000001`), "temperature", apierror.AboveMaximum},
		{"temperature is infinite", chat("plain", `"temperature":1e999`), "temperature", apierror.AboveMaximum},
		{"temperature is a number", chat("plain", `"temperature":"1"`), "temperature", apierror.InvalidType},
		{"temperature is not a boolean", chat("plain", `"temperature":true`), "temperature", apierror.InvalidType},
		{"top_p is a number", chat("plain", `"top_p":[]`), "top_p", apierror.InvalidType},
		{"top_p is infinite", chat("plain", `"top_p":1e999`), "top_p", apierror.AboveMaximum},
		{"top_p with temperature", chat("plain", `"top_p":0.9,"temperature":1`), ok, ""},
		{"frequency_penalty -2", chat("plain", `"frequency_penalty":-2.0`), ok, ""},
		{"frequency_penalty 2", chat("plain", `"frequency_penalty":2`), ok, ""},
		{"frequency_penalty below -2", chat("plain", `"frequency_penalty":-2.1`), "frequency_penalty", apierror.BelowMinimum},
		{"frequency_penalty above 2", chat("plain", `"frequency_penalty":3`), "frequency_penalty", apierror.AboveMaximum},
		{"presence_penalty below -2", chat("plain", `"presence_penalty":-3`), "presence_penalty", apierror.BelowMinimum},
		{"presence_penalty above 2", chat("plain", `"presence_penalty":2.5`), "presence_penalty", apierror.AboveMaximum},
		{"presence_penalty is a number", chat("plain", `"presence_penalty":{}`), "presence_penalty", apierror.InvalidType},

		{"max_tokens is an integer", chat("plain", `"max_tokens":"10"`), "max_tokens", apierror.InvalidType},
		{"max_tokens is not a fraction", chat("plain", `"max_tokens":1.5`), "max_tokens", apierror.InvalidType},
		{"max_tokens is not 1.5", chat("plain", `"max_tokens":5.01`), "max_tokens", apierror.InvalidType},
		{"max_tokens has no exponent", chat("plain", `"max_tokens":1e2`), "max_tokens", apierror.InvalidType},
		{"max_tokens is at least 1", chat("plain", `"max_tokens":0`), "max_tokens", apierror.IntegerTooSmall},
		{"max_tokens is not a decimal point", chat("plain", `"max_tokens":0.0`), "max_tokens", apierror.IntegerTooSmall},
		{"max_tokens is not negative", chat("plain", `"max_tokens":-99999999999999999999`), "max_tokens", apierror.IntegerTooSmall},
		{"max_completion_tokens is an integer", chat("plain", `"max_completion_tokens":true`), "max_completion_tokens", apierror.InvalidType},
		{"the overridden limit is validated, too", chat("plain", `"max_tokens":"x","max_completion_tokens":5`), "max_tokens", apierror.InvalidType},
		{"the row's own field is validated, too", chat("cpp", `"n_predict":-1`), "n_predict", apierror.IntegerTooSmall},
	})
}

func TestToolsAreValidated(t *testing.T) {
	const ok = "ok"
	rule(t, catalog.Chat, []ruling{
		{"tools are an array", chat("plain", `"tools":{}`), "tools", apierror.InvalidType},
		{"a tool is an object", chat("plain", `"tools":[{},"x"]`), "tools[1]", apierror.InvalidType},
		{"tool_choice auto", chat("plain", `"tool_choice":"auto"`), ok, ""},
		{"tool_choice none", chat("plain", `"tool_choice":"none"`), ok, ""},
		{"tool_choice required", chat("plain", `"tool_choice":"required"`), ok, ""},
		{"tool_choice a function", chat("plain", `"tool_choice":{"type":"function","function":{"name":"f"}}`), ok, ""},
		{"tool_choice is an unknown word", chat("plain", `"tool_choice":"any"`), "tool_choice", apierror.InvalidValue},
		{"tool_choice is not a number", chat("plain", `"tool_choice":1`), "tool_choice", apierror.InvalidType},
		{"tool_choice has a type", chat("plain", `"tool_choice":{"function":{"name":"f"}}`), "tool_choice.type", apierror.InvalidValue},
		{"tool_choice with another type", chat("plain", `"tool_choice":{"type":"tool","name":"f"}`), ok, ""},
		{"tool_choice custom", chat("plain", `"tool_choice":{"type":"custom","custom":{"name":"f"}}`), ok, ""},
		{"tool_choice allowed_tools", chat("plain", `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`), ok, ""},
		{"the type of tool_choice is a string", chat("plain", `"tool_choice":{"type":5}`), "tool_choice.type", apierror.InvalidValue},
		{"tool_choice names a function", chat("plain", `"tool_choice":{"type":"function","function":{"name":""}}`), "tool_choice.function.name", apierror.MissingParameter},
		{"tool_choice has a function", chat("plain", `"tool_choice":{"type":"function","function":"f"}`), "tool_choice.function.name", apierror.MissingParameter},
	})
}

func TestResponseFormatIsValidated(t *testing.T) {
	const ok = "ok"
	rule(t, catalog.Chat, []ruling{
		{"response_format is an object", chat("bare", `"response_format":"json"`), "response_format", apierror.InvalidType},
		{"response_format has a type", chat("bare", `"response_format":{}`), "response_format.type", apierror.InvalidValue},
		{"the type of response_format is a string", chat("bare", `"response_format":{"type":{}}`), "response_format.type", apierror.InvalidValue},
		{"the type of response_format is not empty", chat("bare", `"response_format":{"type":""}`), "response_format.type", apierror.InvalidValue},
		{"response_format grammar", chat("bare", `"response_format":{"type":"grammar","grammar":"root"}`), ok, ""},
		{"response_format regex", chat("bare", `"response_format":{"type":"regex","pattern":"x"}`), ok, ""},
		{"response_format structural_tag", chat("bare", `"response_format":{"type":"structural_tag","structures":[],"triggers":[]}`), ok, ""},
		{"response_format json_schema has one", chat("bare", `"response_format":{"type":"json_schema"}`), "response_format.json_schema", apierror.MissingParameter},
		{"response_format json_schema is an object", chat("bare", `"response_format":{"json_schema":[],"type":"json_schema"}`), "response_format.json_schema", apierror.MissingParameter},
		{"response_format text injects nothing", chat("plain", `"response_format":{"type":"text"}`), ok, ""},
	})
}

func TestOtherFieldsAreValidated(t *testing.T) {
	const ok = "ok"
	rule(t, catalog.Chat, []ruling{
		{"n", chat("plain", `"n":16`), ok, ""},
		{"n is at most the row's maximum", chat("away", `"n":4`), "n", apierror.IntegerTooLarge},
		{"n is at most 16", chat("plain", `"n":17`), "n", apierror.IntegerTooLarge},
		{"n is beyond integers", chat("plain", `"n":99999999999999999999`), "n", apierror.IntegerTooLarge},
		{"n is at least 1", chat("plain", `"n":0`), "n", apierror.IntegerTooSmall},
		{"n is an integer", chat("plain", `"n":"2"`), "n", apierror.InvalidType},
		{"n is not a fraction", chat("plain", `"n":1.5`), "n", apierror.InvalidType},
		{"n in capitals", chat("plain", `"N":2`), "N", apierror.InvalidValue},
		{"best_of is limited, too", chat("plain", `"best_of":17`), "best_of", apierror.IntegerTooLarge},

		{"stop is a string", chat("plain", `"stop":"\n"`), ok, ""},
		{"stop up to 4", chat("plain", `"stop":["a","b","c","d"]`), ok, ""},
		{"stop at most 4", chat("plain", `"stop":["a","b","c","d","e"]`), "stop", apierror.ArrayTooLong},
		{"stop is text", chat("plain", `"stop":["a",1]`), "stop", apierror.InvalidType},
		{"stop is not a number", chat("plain", `"stop":1`), "stop", apierror.InvalidType},

		{"reasoning_effort is a string", chat("plain", `"reasoning_effort":3`), "reasoning_effort", apierror.InvalidType},
		{"chat_template_kwargs is an object", chat("plain", `"chat_template_kwargs":"x"`), "chat_template_kwargs", apierror.InvalidType},
		{"stream_options is an object", chat("plain", `"stream_options":true`), "stream_options", apierror.InvalidType},
		{"include_usage is a boolean", chat("plain", `"stream_options":{"include_usage":"yes"}`), "stream_options.include_usage", apierror.InvalidType},

		{"the first error in the contract's order", chat("plain", `"stop":1,"top_p":"x","temperature":3`), "temperature", apierror.AboveMaximum},
		{"missing fields follow the same order", `{"temperature":3,"model":"plain"}`, "messages", apierror.MissingParameter},
	})
}

func TestCompletionsAreValidated(t *testing.T) {
	const ok = "ok"
	rule(t, catalog.Completions, []ruling{
		{"prompt is required", `{"model":"plain"}`, "prompt", apierror.MissingParameter},
		{"prompt null", prompt(`null`), "prompt", apierror.MissingParameter},
		{"a string", prompt(`"x"`), ok, ""},
		{"an empty string", prompt(`""`), ok, ""},
		{"strings", prompt(`["x", "y"]`), ok, ""},
		{"token ids", prompt(`[1, 2,30000]`), ok, ""},
		{"arrays of token ids", prompt(`[[1,2], [3]]`), ok, ""},
		{"nothing", prompt(`[]`), "prompt", apierror.EmptyArray},
		{"a number", prompt(`5`), "prompt", apierror.InvalidType},
		{"an object", prompt(`{}`), "prompt", apierror.InvalidType},
		{"text and ids", prompt(`["x",1]`), "prompt", apierror.InvalidType},
		{"ids and text", prompt(`[1,"x"]`), "prompt", apierror.InvalidType},
		{"ids and arrays", prompt(`[1,[2]]`), "prompt", apierror.InvalidType},
		{"arrays and text", prompt(`[[1],"x"]`), "prompt", apierror.InvalidType},
		{"arrays of text", prompt(`[["x"]]`), "prompt", apierror.InvalidType},
		{"a negative id", prompt(`[1,-2]`), "prompt", apierror.InvalidType},
		{"a fraction", prompt(`[1.0]`), "prompt", apierror.InvalidType},
		{"null inside", prompt(`[null]`), "prompt", apierror.InvalidType},
		{"deeper", prompt(`[[[1]]]`), "prompt", apierror.InvalidType},

		{"best_of is at most the row's maximum", completion("away", `"best_of":4`), "best_of", apierror.IntegerTooLarge},
		{"prompts are at most the row's maximum", `{"model":"away","prompt":["a","b","c"]}`, "prompt", apierror.ArrayTooLong},
		{"prompts of token ids are limited, too", `{"model":"away","prompt":[[1],[2],[3]]}`, "prompt", apierror.ArrayTooLong},
		{"any number of token ids", `{"model":"away","prompt":[1,2,3]}`, ok, ""},

		{"any number of stop sequences", completion("plain", `"stop":["a","b","c","d","e","f"]`), ok, ""},
		{"stop is text", completion("plain", `"stop":[[]]`), "stop", apierror.InvalidType},
		{"ignore_eos", completion("plain", `"ignore_eos":true`), ok, ""},
		{"ignore_eos is a boolean", completion("plain", `"ignore_eos":0`), "ignore_eos", apierror.InvalidType},
		{"temperature above 2", completion("plain", `"temperature":2.1`), "temperature", apierror.AboveMaximum},
		{"presence_penalty below -2", completion("plain", `"presence_penalty":-2.1`), "presence_penalty", apierror.BelowMinimum},
		{"max_tokens 0, to echo the prompt", completion("plain", `"max_tokens":0,"echo":true`), ok, ""},
		{"max_tokens is not negative", completion("plain", `"max_tokens":-1`), "max_tokens", apierror.IntegerTooSmall},
		{"stream is a boolean", completion("plain", `"stream":"x"`), "stream", apierror.InvalidType},
	})
}

// If two readers understood a request differently, a model server might use values that were not checked.
func TestAmbiguousRequestsAreRejected(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	rule(t, catalog.Chat, []ruling{
		{"nothing", ``, "", apierror.InvalidJSON},
		{"not JSON", `hello`, "", apierror.InvalidJSON},
		{"an array", `[]`, "", apierror.InvalidJSON},
		{"null", `null`, "", apierror.InvalidJSON},
		{"truncated", chat("plain")[:40], "", apierror.InvalidJSON},
		{"text after the object", chat("plain") + `{}`, "", apierror.InvalidJSON},
		{"NaN", chat("plain", `"temperature":NaN`), "", apierror.InvalidJSON},
		{"Infinity", chat("plain", `"x":-Infinity`), "", apierror.InvalidJSON},
		{"a comment", chat("plain", `/* x */"x":1`), "", apierror.InvalidJSON},
		{"a trailing comma", chat("plain", `"x":[1,]`), "", apierror.InvalidJSON},
		{"a byte order mark", "\ufeff" + chat("plain"), "", apierror.InvalidJSON},
		{"invalid UTF-8", message("\"role\":\"user\",\"content\":\"\xff\""), "", apierror.InvalidJSON},
		{"a lone surrogate", message(`"role":"user","content":"\ud83d"`), "", apierror.InvalidJSON},
		{"a control character", message("\"role\":\"user\",\"content\":\"\n\""), "", apierror.InvalidJSON},
		{"deep", chat("plain", `"x":`+deep), "", apierror.InvalidJSON},
		{"deep nesting without ends", strings.Repeat(`{"a":`, 1<<20), "", apierror.InvalidJSON},
		{"a duplicate field", chat("plain", `"max_tokens":1`, `"max_tokens":100000`), "max_tokens", apierror.InvalidJSON},
		{"a duplicate field, once escaped", chat("plain", `"max_tokens":1`, `"max\u005ftokens":100000`), "max_tokens", apierror.InvalidJSON},
		{"a nested duplicate field", `{"model":"plain","messages":[{"role":"user","content":"x","role":"tool"}]}`, "messages[0].role", apierror.InvalidJSON},
		{"a duplicate unknown field", chat("plain", `"x":{"y":[{"z":1,"z":2}]}`), "x.y[0].z", apierror.InvalidJSON},
		{"a field in another case", chat("plain", `"MAX_TOKENS":100000`), "MAX_TOKENS", apierror.InvalidValue},
		{"a field with a letter that folds to ASCII", chat("plain", `"max_toKens":100000`), "max_toKens", apierror.InvalidValue},
	})
	// Brackets within a string do not count as nesting.
	text := message(`"role":"user","content":"` + strings.Repeat(`[{\"\\`, 500) + `"`)
	rule(t, catalog.Chat, []ruling{
		{"brackets in a text", text, "ok", ""},
		{"the maximum depth", chat("plain", `"x":`+strings.Repeat("[", 127)+strings.Repeat("]", 127)), "ok", ""},
		{"many flat arrays", chat("plain", `"x":[`+strings.Repeat(`[],{},`, 500)+`0]`), "ok", ""},
		{"an unknown field in capitals", chat("plain", `"X_Y":1`), "ok", ""},
	})
}

func TestNumberOfMembersIsLimited(t *testing.T) {
	var many strings.Builder
	for range 1 << 17 {
		many.WriteString(`{"a":1,"b":2},`)
	}
	body := chat("plain", `"x":[`+many.String()+`{"a":1}]`)
	_, problem := request.Parse(catalog.Chat, []byte(body), caller(t))
	if problem == nil || problem.Code != apierror.InvalidJSON {
		t.Fatalf("got %v, want a rejection", problem)
	}
	colons := message(`"role":"user","content":"` + strings.Repeat(":", 1<<19) + `"`)
	if _, problem := request.Parse(catalog.Chat, []byte(colons), caller(t)); problem != nil {
		t.Fatalf("colons in a text were rejected: %v", problem)
	}
}

type refuser func(slug string) string

func (r refuser) Refuses(slug string) string { return r(slug) }

// See docs/contract/errors.md#order-of-checks.
func TestModelAndScopeAreCheckedFirst(t *testing.T) {
	who := caller(t)
	who.Refuser = refuser(func(slug string) string {
		if slug == "short" {
			return ""
		}
		return "The token may not use this model."
	})
	for _, c := range []struct {
		name   string
		route  catalog.Route
		body   string
		status int
		code   string
	}{
		{"an unknown model", catalog.Chat, `{"model":"none"}`, 404, apierror.ModelNotFound},
		{"a media model", catalog.Chat, `{"model":"media"}`, 404, apierror.ModelNotFound},
		{"a placeholder", catalog.Completions, `{"model":"later"}`, 404, apierror.ModelNotFound},
		{"a model without chat", catalog.Chat, `{"model":"old"}`, 404, apierror.ModelNotFound},
		{"a model without completions", catalog.Completions, `{"model":"bare"}`, 404, apierror.ModelNotFound},
		{"a model out of scope", catalog.Chat, `{"model":"plain"}`, 403, apierror.ModelNotAllowed},
		{"content", catalog.Chat, `{"model":"short"}`, 400, apierror.MissingParameter},
		{"a bad model before bad content", catalog.Chat, `{"model":7,"temperature":"x"}`, 400, apierror.InvalidType},
		{"an endless name", catalog.Chat, `{"model":"` + strings.Repeat("x", 1<<20) + `"}`, 404, apierror.ModelNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problem := request.Parse(c.route, []byte(c.body), who)
			if problem == nil || problem.Status != c.status || problem.Code != c.code {
				t.Fatalf("got %+v, want %d %s", problem, c.status, c.code)
			}
			if len(problem.Message) > 500 {
				t.Errorf("a message of %d bytes", len(problem.Message))
			}
		})
	}
}

// Parsing 31 MiB of small values would take seconds.
func TestNumberOfValuesIsLimited(t *testing.T) {
	for route, field := range map[catalog.Route]string{
		catalog.Rerank: "documents", catalog.Score: "text_2", catalog.Responses: "input", catalog.Chat: "messages",
		catalog.Completions: "prompt", catalog.Embeddings: "input",
	} {
		for _, value := range []string{"1", `""`, "[]", "null"} {
			body := `{"model":"plain","` + field + `":[` + strings.Repeat(value+",", 1<<20+1) + value + "]}"
			if _, problem := request.Parse(route, []byte(body), caller(t)); problem == nil || problem.Status != 400 ||
				!strings.Contains(problem.Message, "values") {
				t.Errorf("%s of %s: %v", route, value, problem)
			}
		}
	}
	commas := chat("plain", `"user":"`+strings.Repeat(",", 2<<20)+`"`)
	if _, problem := request.Parse(catalog.Chat, []byte(commas), caller(t)); problem != nil {
		t.Errorf("commas in a text: %s", problem.Message)
	}
}
