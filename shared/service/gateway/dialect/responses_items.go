package dialect

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// input writes the messages. It joins the instructions and the leading system messages, because
// many templates accept only one system message, at the start.
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

// systemText returns the texts of a system message. ok is false if the message contains anything else.
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

// item writes an input item, or saves it for the assistant message.
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

func (w *responsesWriter) finish() {
	w.assistant()
	w.showPictures()
}

func (w *responsesWriter) message(item gjson.Result, place string) {
	role, content := item.Get("role"), item.Get("content")
	w.members(item, place, func(name string, _ gjson.Result) {
		switch name {
		case "type", "role", "content", "id", "status", "phase":
		default:
			if !isAboutClient(name) {
				w.unknown(below(place, name))
			}
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
		w.reject(place+".role", apierror.InvalidValue, "%s.role: expected user, assistant, system or developer.", place)
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

// isAboutClient reports whether an item's member is only for the client and its own service, such as
// metadata. Models never see it.
func isAboutClient(name string) bool {
	return strings.Contains(name, "metadata") || strings.HasPrefix(name, "client_") || strings.HasPrefix(name, "internal_")
}

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

// thought saves the text of a reasoning item, or its summary if the item has no text.
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
					arguments := func() { w.raw("arguments", call.Get("arguments").Raw) }
					if input := call.Get("input"); call.Get("type").Str == "custom_tool_call" {
						arguments = func() { w.text("arguments", `{"input":`+input.Raw+`}`) }
					}
					w.call(call.Get("call_id").Raw, name, arguments)
				}
			})
		}
	})
	w.said, w.thoughts, w.calls, w.refusal = nil, nil, nil, gjson.Result{}
}
