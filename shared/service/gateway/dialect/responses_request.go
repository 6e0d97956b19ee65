package dialect

import (
	"fmt"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// Request appends the chat request for a request of Responses.
func (r *Responses) Request(out, body []byte, _ *catalog.Inference) ([]byte, *apierror.Error) {
	object, _ := jsonedit.ParseObject(body) // it was read before
	w := &responsesWriter{writer: writer{out: out}, spaces: r.spaces, customs: r.customs}
	w.open('{')
	w.list("messages", func() { w.input(object.Get("input"), object.Get("instructions")) })
	w.members(object, "", func(name string, value gjson.Result) {
		w.field(name, value)
		r.remember(name, value)
	})
	if r.walk.told = w.told; w.told {
		w.raw("logprobs", "true")
	}
	w.close('}')
	return w.out, w.problem
}

// responsesWriter writes the chat for a request of Responses.
type responsesWriter struct {
	writer
	// said, thoughts and calls are what the assistant's message that is being
	// gathered consists of.
	said, thoughts []gjson.Result
	calls          []gjson.Result
	refusal        gjson.Result
	// spaces are the functions of namespaces, by their names in the chat; spelled is
	// how long the texts are that their functions repeat, in bytes.
	spaces  map[string]function
	spelled int
	// customs are the names of tools that take a text; told reports whether the
	// caller asks for probabilities of tokens.
	customs map[string]bool
	told    bool
	// pictures are those of results, which follow in a message of the user.
	pictures []picture
}

// field writes a top-level field besides the input.
func (w *responsesWriter) field(name string, value gjson.Result) {
	switch name {
	case "input", "instructions", "store", "background", "client_metadata", "max_tool_calls", "metadata":
		// Metadata is repeated in the answer, that of the client is about itself;
		// calls of built-in tools there are none to limit.
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
				// Reasoning is in the answer as it is, so that none need be hidden.
			case "message.output_text.logprobs":
				w.told = true
			default:
				w.unknown(fmt.Sprintf("include[%d]", i))
			}
		})
	case "truncation":
		if value.Str != "disabled" {
			w.unknown(name)
		}
	case "stream_options":
		w.members(value, name, func(inner string, _ gjson.Result) {
			if inner != "include_obfuscation" {
				w.unknown(below(name, inner))
			}
		})
	case "top_logprobs":
		switch {
		case value.Type != gjson.Number:
			w.want(name, "an integer")
		case value.Num != 0:
			w.told = true
			w.raw(name, value.Raw)
		}
	default:
		if chatOnly(name) {
			w.unknown(name)
			return
		}
		// The check of the chat decides by the row, as for chats.
		w.raw(name, value.Raw)
	}
}

// reasoning writes the effort; a summary there is none of, as the reasoning
// itself is in the answer.
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

// format writes what form the answer has.
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
