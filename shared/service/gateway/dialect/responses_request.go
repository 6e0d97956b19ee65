package dialect

import (
	"fmt"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

func (r *Responses) Request(out, body []byte, _ *catalog.Inference) ([]byte, *apierror.Error) {
	object, _ := jsonedit.ParseObject(body) // already validated
	w := &responsesWriter{writer: writer{out: out}, spaces: r.spaces, customs: r.customs}
	w.open('{')
	w.list("messages", func() { w.input(object.Get("input"), object.Get("instructions")) })
	w.members(object, "", func(name string, value gjson.Result) {
		w.field(name, value)
		r.remember(name, value)
	})
	if r.walk.wantsLogprobs = w.wantsLogprobs; w.wantsLogprobs {
		w.raw("logprobs", "true")
	}
	w.close('}')
	return w.out, w.problem
}

type responsesWriter struct {
	writer
	// The assistant message that has not been written yet.
	said, thoughts []gjson.Result
	calls          []gjson.Result
	refusal        gjson.Result
	// spaces maps a function's name in the chat to its namespace and name. spelled counts the bytes
	// of repeated namespaces.
	spaces  map[string]function
	spelled int
	// customs lists the tools whose input is text.
	customs       map[string]bool
	wantsLogprobs bool
	// pictures lists the images in tool results. A user message after the results contains them.
	pictures []picture
}

func (w *responsesWriter) field(name string, value gjson.Result) {
	switch name {
	case "input", "instructions", "store", "background", "client_metadata", "max_tool_calls", "metadata":
		// Not forwarded: the response repeats metadata, client metadata is only for the client, and a limit on
		// built-in tools has no effect without such tools.
	case "model", "stream", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
		"service_tier", "temperature", "top_p", "user":
		w.raw(name, value.Raw)
	case "max_output_tokens":
		w.raw("max_tokens", value.Raw)
	case "tools":
		w.list("tools", func() { w.elements(value, name, w.tool) })
	case "tool_choice":
		w.toolChoice(value)
	case "text":
		w.format(value)
	case "reasoning":
		w.reasoning(value)
	case "include":
		w.elements(value, name, func(i int, what gjson.Result) {
			switch what.Str {
			case "reasoning.encrypted_content":
				// Ignored: the response contains the reasoning in plain text.
			case "message.output_text.logprobs":
				w.wantsLogprobs = true
			default:
				w.unknown(fmt.Sprintf("include[%d]", i))
			}
		})
	case "truncation":
		if value.Str != "disabled" {
			w.unknown(name)
		}
	case "stream_options":
		w.only(value, name, "include_obfuscation")
	case "top_logprobs":
		switch {
		case value.Type != gjson.Number:
			w.want(name, "an integer")
		case value.Num != 0:
			w.wantsLogprobs = true
			w.raw(name, value.Raw)
		}
	default:
		if chatOnly(name) {
			w.unknown(name)
			return
		}
		// The row's rules check this field later, as they do for chat.
		w.raw(name, value.Raw)
	}
}

// reasoning writes the effort. It ignores the summary setting, because the response contains the reasoning itself.
func (w *responsesWriter) reasoning(value gjson.Result) {
	w.members(value, "reasoning", func(name string, value gjson.Result) {
		switch name {
		case "effort":
			if w.isText(value, "reasoning.effort") {
				w.raw("reasoning_effort", value.Raw)
			}
		case "summary", "generate_summary":
		default:
			w.unknown("reasoning." + name)
		}
	})
}

func (w *responsesWriter) format(value gjson.Result) {
	w.members(value, "text", func(name string, value gjson.Result) {
		switch name {
		case "verbosity":
			w.raw("verbosity", value.Raw)
		case "format":
			switch kind := value.Get("type").Str; {
			case kind == "text":
			case kind == "json_object":
				w.raw("response_format", `{"type":"json_object"}`)
			case kind != "json_schema":
				w.unknown("text.format.type")
			case w.isText(value.Get("name"), "text.format.name"):
				if !value.Get("schema").IsObject() {
					w.want("text.format.schema", "an object")
					return
				}
				w.schema(value.Get("name").Raw, value.Get("schema").Raw, value.Get("description"), value.Get("strict"))
			}
		default:
			w.unknown("text." + name)
		}
	})
}
