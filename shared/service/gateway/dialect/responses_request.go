package dialect

import (
	"fmt"
	"strings"

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

// maxSpelled bounds what the functions of namespaces repeat of them, in bytes: a chat
// has names and descriptions of namespaces in each of their functions.
const maxSpelled = 1 << 20

// function is a function of a namespace.
type function struct{ space, name string }

// inChat is the function's name in a chat, which knows no namespaces.
func (f function) inChat() string { return f.space + "__" + f.name }

// picture is a part of the result of a call.
type picture struct {
	call, part gjson.Result
	place      string
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

// tool writes a function, or those of a namespace.
func (w *responsesWriter) tool(i int, tool gjson.Result) {
	place := fmt.Sprintf("tools[%d]", i)
	switch tool.Get("type").Str {
	case "function":
		w.function(tool, place, gjson.Result{})
	case "custom":
		w.custom(tool, place)
	case "namespace":
		w.isText(tool.Get("name"), place+".name")
		w.members(tool, place, func(name string, value gjson.Result) {
			switch name {
			case "type", "name", "description":
			case "tools":
				w.elements(value, place+".tools", func(i int, inner gjson.Result) {
					at := fmt.Sprintf("%s.tools[%d]", place, i)
					if inner.Get("type").Str != "function" {
						w.unknown(at)
						return
					}
					w.function(inner, at, tool)
				})
			default:
				w.unknown(below(place, name))
			}
		})
	default:
		w.unknown(place)
	}
}

// function writes a function. That of a namespace has its name before its own,
// and its description too.
func (w *responsesWriter) function(tool gjson.Result, place string, space gjson.Result) {
	if w.spelled += len(space.Get("name").Str) + len(space.Get("description").Str); w.spelled > maxSpelled {
		w.refuse(place, apierror.ArrayTooLong, "%s: the namespaces' names and descriptions are too long for so many functions.", place)
		return
	}
	w.object(func() {
		w.raw("type", `"function"`)
		w.inner("function", func() {
			w.members(tool, place, func(name string, value gjson.Result) {
				switch name {
				case "type":
				case "name":
					if !w.isText(value, place+".name") || !space.Exists() {
						w.raw(name, value.Raw)
						return
					}
					f := function{strings.Clone(space.Get("name").Str), strings.Clone(value.Str)}
					w.spaces[f.inChat()] = f
					w.text(name, f.inChat())
				case "description":
					if about := space.Get("description"); about.Type == gjson.String && value.Type == gjson.String {
						w.raw(name, `"`+inside(about)+`\n\n`+inside(value)+`"`)
						return
					}
					w.raw(name, value.Raw)
				case "strict", "parameters":
					w.raw(name, value.Raw)
				default:
					w.unknown(below(place, name))
				}
			})
			w.isText(tool.Get("name"), place+".name")
		})
	})
}

// toolChoice writes tool_choice.
func (w *responsesWriter) toolChoice(value gjson.Result) {
	switch {
	case value.Type == gjson.String:
		w.raw("tool_choice", value.Raw)
	case value.Get("type").Str == "function", value.Get("type").Str == "custom":
		if name := value.Get("name"); w.isText(name, "tool_choice.name") {
			w.namedChoice(name.Raw)
		}
	default:
		w.unknown("tool_choice")
	}
}

// input writes the messages. Instructions and the system's messages at the
// beginning are one message: many templates take one there and nowhere else.
func (w *responsesWriter) input(input, instructions gjson.Result) {
	var system []gjson.Result
	if instructions.Type != gjson.Null && w.isText(instructions, "instructions") {
		system = append(system, instructions)
	}
	if input.Type == gjson.String {
		w.system(system)
		w.object(func() {
			w.raw("role", `"user"`)
			w.raw("content", input.Raw)
		})
		return
	}
	leading := true
	w.elements(input, "input", func(i int, item gjson.Result) {
		if text, ok := systemText(item); leading && ok {
			system = append(system, text...)
			return
		}
		if leading {
			leading = false
			w.system(system)
		}
		w.item(item, fmt.Sprintf("input[%d]", i))
	})
	if leading {
		w.system(system)
	}
	w.finish()
}

// systemText returns the texts of a message of the system, if it is one of texts
// alone.
func systemText(item gjson.Result) (all []gjson.Result, ok bool) {
	role, content := item.Get("role").Str, item.Get("content")
	if role != "system" && role != "developer" {
		return nil, false
	}
	if content.Type == gjson.String {
		return []gjson.Result{content}, true
	}
	ok = content.IsArray()
	content.ForEach(func(_, part gjson.Result) bool {
		text := part.Get("text")
		ok = ok && part.Get("type").Str == "input_text" && text.Type == gjson.String
		all = append(all, text)
		return ok
	})
	return all, ok
}

// system writes the message of the system, if it has a text.
func (w *responsesWriter) system(all []gjson.Result) {
	if len(all) == 0 {
		return
	}
	pieces := make([]string, len(all))
	for i, text := range all {
		pieces[i] = inside(text)
	}
	w.object(func() {
		w.raw("role", `"system"`)
		w.raw("content", `"`+strings.Join(pieces, `\n\n`)+`"`)
	})
}

// item writes an item of the input, or gathers it for the assistant's message.
func (w *responsesWriter) item(item gjson.Result, place string) {
	kind := item.Get("type").Str
	if kind == "" && item.Get("role").Exists() {
		kind = "message"
	}
	if kind != "function_call_output" && kind != "custom_tool_call_output" {
		w.showPictures()
	}
	switch kind {
	case "message":
		w.message(item, place)
	case "reasoning":
		if len(w.said)+len(w.calls) > 0 || w.refusal.Exists() {
			w.assistant()
		}
		w.thought(item, place)
	case "function_call":
		for _, name := range []string{"call_id", "name", "arguments"} {
			w.isText(item.Get(name), below(place, name))
		}
		w.calls = append(w.calls, item)
	case "custom_tool_call":
		for _, name := range []string{"call_id", "name", "input"} {
			w.isText(item.Get(name), below(place, name))
		}
		w.calls = append(w.calls, item)
	case "function_call_output", "custom_tool_call_output":
		w.assistant()
		w.output(item, place)
	default:
		w.unknown(place)
	}
}

// finish writes what is still gathered.
func (w *responsesWriter) finish() {
	w.assistant()
	w.showPictures()
}

// message writes a message, or gathers one of the assistant.
func (w *responsesWriter) message(item gjson.Result, place string) {
	role, content := item.Get("role"), item.Get("content")
	w.members(item, place, func(name string, _ gjson.Result) {
		switch name {
		case "type", "role", "content", "id", "status", "phase":
		default:
			w.unknown(below(place, name))
		}
	})
	if role.Str == "assistant" {
		if len(w.said)+len(w.calls) > 0 || w.refusal.Exists() {
			w.assistant()
		}
		w.answered(content, place+".content")
		return
	}
	w.assistant()
	switch role.Str {
	case "user", "system", "developer":
	default:
		w.refuse(place+".role", apierror.InvalidValue, "%s.role: expected user, assistant, system or developer.", place)
		return
	}
	w.object(func() {
		w.raw("role", role.Raw)
		if content.Type == gjson.String {
			w.raw("content", content.Raw)
			return
		}
		w.list("content", func() {
			w.elements(content, place+".content", func(i int, part gjson.Result) {
				w.part(part, fmt.Sprintf("%s.content[%d]", place, i))
			})
		})
	})
}

// part writes a part of a message: a text, an image or a file.
func (w *responsesWriter) part(part gjson.Result, place string) {
	switch part.Get("type").Str {
	case "input_text":
		if text := part.Get("text"); w.isText(text, place+".text") {
			w.writer.part(text.Raw)
		}
	case "input_image":
		address, detail := part.Get("image_url"), part.Get("detail")
		if part.Get("file_id").Type == gjson.String {
			w.unknown(place + ".file_id")
			return
		}
		if !w.isText(address, place+".image_url") {
			return
		}
		w.object(func() {
			w.raw("type", `"image_url"`)
			w.inner("image_url", func() {
				w.raw("url", address.Raw)
				if detail.Type == gjson.String {
					w.raw("detail", detail.Raw)
				}
			})
		})
	case "input_file":
		if part.Get("file_id").Type == gjson.String || part.Get("file_url").Type == gjson.String {
			w.unknown(place)
			return
		}
		if data := part.Get("file_data"); w.isText(data, place+".file_data") {
			w.object(func() {
				w.raw("type", `"file"`)
				w.inner("file", func() {
					if name := part.Get("filename"); name.Type == gjson.String {
						w.raw("filename", name.Raw)
					}
					w.raw("file_data", data.Raw)
				})
			})
		}
	default:
		w.unknown(place)
	}
}

// answered gathers the content of an assistant's message.
func (w *responsesWriter) answered(content gjson.Result, place string) {
	if content.Type == gjson.String {
		w.said = append(w.said, content)
		return
	}
	w.elements(content, place, func(i int, part gjson.Result) {
		at := fmt.Sprintf("%s[%d]", place, i)
		switch part.Get("type").Str {
		case "output_text", "input_text":
			if w.isText(part.Get("text"), at+".text") {
				w.said = append(w.said, part.Get("text"))
			}
		case "refusal":
			if w.isText(part.Get("refusal"), at+".refusal") {
				w.refusal = part.Get("refusal")
			}
		default:
			w.unknown(at)
		}
	})
}

// thought gathers reasoning: its text, or its summary where that is all there is.
func (w *responsesWriter) thought(item gjson.Result, place string) {
	before := len(w.thoughts)
	for _, name := range []string{"content", "summary"} {
		if value := item.Get(name); value.IsArray() && len(w.thoughts) == before {
			w.elements(value, below(place, name), func(i int, part gjson.Result) {
				if w.isText(part.Get("text"), fmt.Sprintf("%s.%s[%d].text", place, name, i)) {
					w.thoughts = append(w.thoughts, part.Get("text"))
				}
			})
		}
	}
	if len(w.thoughts) == before && item.Get("encrypted_content").Type == gjson.String {
		w.unknown(place + ".encrypted_content")
	}
}

// assistant writes the assistant's message that was gathered, if any.
func (w *responsesWriter) assistant() {
	if len(w.said)+len(w.thoughts)+len(w.calls) == 0 && !w.refusal.Exists() || w.problem != nil {
		return
	}
	w.object(func() {
		w.raw("role", `"assistant"`)
		if len(w.thoughts) > 0 {
			w.joined("reasoning_content", w.thoughts)
		}
		if len(w.said) > 0 {
			w.joined("content", w.said)
		}
		if w.refusal.Exists() {
			w.raw("refusal", w.refusal.Raw)
		}
		if len(w.calls) > 0 {
			w.list("tool_calls", func() {
				for _, call := range w.calls {
					name := call.Get("name").Raw
					if space := call.Get("namespace"); space.Type == gjson.String {
						name = string(jsonedit.Quote(function{space.Str, call.Get("name").Str}.inChat()))
					}
					arguments := call.Get("arguments").Raw
					if input := call.Get("input"); call.Get("type").Str == "custom_tool_call" {
						arguments = string(jsonedit.Quote(`{"input":` + input.Raw + `}`))
					}
					w.call(call.Get("call_id").Raw, name, arguments)
				}
			})
		}
	})
	w.said, w.thoughts, w.calls, w.refusal = nil, nil, nil, gjson.Result{}
}

// output writes the result of a call.
func (w *responsesWriter) output(item gjson.Result, place string) {
	id, output := item.Get("call_id"), item.Get("output")
	if !w.isText(id, place+".call_id") {
		return
	}
	w.object(func() {
		w.raw("role", `"tool"`)
		w.raw("tool_call_id", id.Raw)
		if output.Type == gjson.String {
			w.raw("content", output.Raw)
			return
		}
		w.list("content", func() {
			w.elements(output, place+".output", func(i int, part gjson.Result) {
				at := fmt.Sprintf("%s.output[%d]", place, i)
				if part.Get("type").Str == "input_text" {
					w.part(part, at)
				} else {
					w.pictures = append(w.pictures, picture{id, part, at})
				}
			})
			if !w.comma {
				w.writer.part(`""`)
			}
		})
	})
}

// showPictures writes the pictures of results as a message of the user, because
// few servers take them in a message of a tool.
func (w *responsesWriter) showPictures() {
	if len(w.pictures) == 0 {
		return
	}
	w.object(func() {
		w.raw("role", `"user"`)
		w.list("content", func() {
			for i, p := range w.pictures {
				if i == 0 || w.pictures[i-1].call.Raw != p.call.Raw {
					w.writer.part(`"Of the result of the tool call ` + inside(p.call) + `:"`)
				}
				w.part(p.part, p.place)
			}
		})
	})
	w.pictures = nil
}
