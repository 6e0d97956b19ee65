package dialect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// maxStops is how many stop sequences chat takes (docs/contract/limits.md).
const maxStops = 4

// Request appends the chat request for a request of Messages.
func (m *Messages) Request(out, body []byte, row *catalog.Inference) ([]byte, *apierror.Error) {
	object, _ := jsonedit.ParseObject(body) // it was read before
	w := &messagesWriter{writer: writer{out: out}, row: row}
	w.open('{')
	w.list("messages", func() {
		w.system(object.Get("system"))
		w.elements(object.Get("messages"), "messages", w.message)
	})
	w.members(object, "", func(name string, value gjson.Result) {
		if name == "stop_sequences" {
			m.stops = texts(value)
		}
		w.field(name, value)
	})
	w.close('}')
	return w.out, w.problem
}

// texts are the strings of an array.
func texts(array gjson.Result) []string {
	var all []string
	array.ForEach(func(_, value gjson.Result) bool {
		all = append(all, strings.Clone(value.String()))
		return true
	})
	return all
}

// messagesWriter writes the chat for a request of Messages.
type messagesWriter struct {
	writer
	row *catalog.Inference
}

// field writes a top-level field besides the messages.
func (w *messagesWriter) field(name string, value gjson.Result) {
	switch name {
	case "messages", "system":
	case "max_tokens", "model", "stream":
		w.raw(name, value.Raw)
	case "stop_sequences":
		w.elements(value, name, func(i int, stop gjson.Result) { w.isText(stop, fmt.Sprintf("%s[%d]", name, i)) })
		if n := len(texts(value)); n > maxStops {
			w.refuse(name, apierror.ArrayTooLong, "%s: expected at most %d.", name, maxStops)
		} else if n > 0 {
			w.raw("stop", value.Raw)
		}
	case "tools":
		w.list("tools", func() { w.elements(value, name, w.tool) })
	case "tool_choice":
		w.toolChoice(value)
	case "thinking":
		w.thinking(value)
	case "output_config":
		w.outputConfig(value)
	case "metadata":
		w.members(value, name, func(inner string, value gjson.Result) {
			if inner != "user_id" {
				w.unknown(below(name, inner))
			} else if w.isText(value, "metadata.user_id") {
				w.raw("user", value.Raw)
			}
		})
	case "service_tier":
		// It chooses among prices of one provider; a model server has none.
	case "context_management":
		w.contextManagement(value)
	case "container", "mcp_servers":
		w.unknown(name)
	default:
		if chatOnly(name) {
			w.unknown(name)
			return
		}
		// The check of the chat decides by the row, as for chats.
		w.raw(name, value.Raw)
	}
}

// contextManagement accepts what changes nothing: no edits, or the one that keeps
// all thinking.
func (w *messagesWriter) contextManagement(value gjson.Result) {
	w.members(value, "context_management", func(name string, value gjson.Result) {
		if name != "edits" {
			w.unknown("context_management." + name)
			return
		}
		w.elements(value, "context_management.edits", func(i int, edit gjson.Result) {
			if edit.Get("type").Str != "clear_thinking_20251015" || edit.Get("keep").Str != "all" {
				w.unknown(fmt.Sprintf("context_management.edits[%d]", i))
			}
		})
	})
}

// system writes the system prompt.
func (w *messagesWriter) system(value gjson.Result) {
	if value.Type == gjson.Null {
		return
	}
	w.object(func() {
		w.raw("role", `"system"`)
		w.content(value, "system")
	})
}

// content writes a content of texts alone: one as it is, several as parts.
func (w *messagesWriter) content(value gjson.Result, place string) {
	if value.Type == gjson.String {
		w.raw("content", value.Raw)
		return
	}
	w.list("content", func() {
		w.elements(value, place, func(i int, block gjson.Result) {
			at := fmt.Sprintf("%s[%d]", place, i)
			if kind := block.Get("type").Str; kind != "text" {
				w.unknown(at)
				return
			}
			w.textBlock(block, at)
		})
	})
}

// textBlock writes a block of text as a part.
func (w *messagesWriter) textBlock(block gjson.Result, place string) {
	w.members(block, place, func(name string, value gjson.Result) {
		switch name {
		case "type", "cache_control":
		case "citations":
			if value.IsArray() && len(value.Array()) > 0 {
				w.unknown(below(place, name))
			}
		case "text":
			if w.isText(value, below(place, name)) {
				w.part(value.Raw)
			}
		default:
			w.unknown(below(place, name))
		}
	})
}

// part writes a part of text, which is JSON already.
func (w *writer) part(text string) {
	w.object(func() {
		w.raw("type", `"text"`)
		w.raw("text", text)
	})
}

// message writes the messages for one message.
func (w *messagesWriter) message(i int, value gjson.Result) {
	place := fmt.Sprintf("messages[%d]", i)
	role, content := value.Get("role").Str, value.Get("content")
	w.members(value, place, func(name string, _ gjson.Result) {
		if name != "role" && name != "content" {
			w.unknown(below(place, name))
		}
	})
	switch {
	case w.problem != nil:
	case role == "assistant":
		w.assistant(content, place+".content")
	case role == "system":
		w.system(content)
	case role != "user":
		w.refuse(place+".role", apierror.InvalidValue, "%s.role: expected user or assistant.", place)
	case content.Type == gjson.String:
		w.object(func() {
			w.raw("role", `"user"`)
			w.raw("content", content.Raw)
		})
	default:
		w.user(content, place+".content")
	}
}

// user writes a message of blocks: the results of tools as messages of their own,
// then the rest. Pictures in results follow with the rest, because few servers
// take them in a message of a tool.
func (w *messagesWriter) user(content gjson.Result, place string) {
	others, pictures := 0, 0
	w.elements(content, place, func(i int, block gjson.Result) {
		if block.Get("type").Str != "tool_result" {
			others++
			return
		}
		pictures += w.toolResult(block, fmt.Sprintf("%s[%d]", place, i))
	})
	if w.problem != nil || others+pictures == 0 {
		return
	}
	w.object(func() {
		w.raw("role", `"user"`)
		w.list("content", func() {
			w.elements(content, place, func(i int, block gjson.Result) {
				at := fmt.Sprintf("%s[%d]", place, i)
				if block.Get("type").Str == "tool_result" {
					w.pictures(block, at)
				} else {
					w.block(block, at)
				}
			})
		})
	})
}

// block writes a block of a user as a part.
func (w *messagesWriter) block(block gjson.Result, place string) {
	switch block.Get("type").Str {
	case "text":
		w.textBlock(block, place)
	case "image":
		w.image(block, place)
	case "document":
		w.document(block, place)
	default:
		w.unknown(place)
	}
}

// image writes an image as a part.
func (w *messagesWriter) image(block gjson.Result, place string) {
	source := block.Get("source")
	var kind, data, address, media gjson.Result
	w.members(source, place+".source", func(name string, value gjson.Result) {
		switch name {
		case "type":
			kind = value
		case "data":
			data = value
		case "url":
			address = value
		case "media_type":
			media = value
		default:
			w.unknown(place + ".source." + name)
		}
	})
	switch {
	case w.problem != nil:
	case kind.Str == "base64":
		if w.isText(media, place+".source.media_type") && w.isText(data, place+".source.data") {
			w.picture(`"data:`, inside(media), ";base64,", inside(data), `"`)
		}
	case kind.Str == "url":
		if w.isText(address, place+".source.url") {
			w.picture(address.Raw)
		}
	default:
		w.unknown(place + ".source")
	}
}

// picture writes an image_url part; the pieces make a JSON string.
func (w *writer) picture(pieces ...string) {
	w.object(func() {
		w.raw("type", `"image_url"`)
		w.inner("image_url", func() {
			w.name("url")
			for _, piece := range pieces {
				w.out = append(w.out, piece...)
			}
		})
	})
}

// document writes a document: a text as text, a PDF as a file.
func (w *messagesWriter) document(block gjson.Result, place string) {
	source, title := block.Get("source"), block.Get("title")
	if block.Get("context").Type == gjson.String || block.Get("citations.enabled").Bool() {
		w.unknown(place)
		return
	}
	data := source.Get("data")
	switch source.Get("type").Str {
	case "text":
		if w.isText(data, place+".source.data") {
			w.part(data.Raw)
		}
	case "base64":
		if !w.isText(data, place+".source.data") || !w.isText(source.Get("media_type"), place+".source.media_type") {
			return
		}
		w.object(func() {
			w.raw("type", `"file"`)
			w.inner("file", func() {
				if title.Type == gjson.String {
					w.raw("filename", title.Raw)
				}
				w.name("file_data")
				for _, piece := range []string{`"data:`, inside(source.Get("media_type")), ";base64,", inside(data), `"`} {
					w.out = append(w.out, piece...)
				}
			})
		})
	default:
		w.unknown(place + ".source")
	}
}

// failedResult precedes the content of a result that is an error: a chat's
// message of a tool cannot say so otherwise.
const failedResult = "The tool failed:\n"

// toolResult writes the message of a tool, and returns how many pictures are left
// for the message that follows.
func (w *messagesWriter) toolResult(block gjson.Result, place string) (pictures int) {
	var id, content, failed gjson.Result
	w.members(block, place, func(name string, value gjson.Result) {
		switch name {
		case "tool_use_id":
			id = value
		case "content":
			content = value
		case "is_error":
			failed = value
		case "type", "cache_control":
		default:
			w.unknown(below(place, name))
		}
	})
	if !w.isText(id, place+".tool_use_id") {
		return 0
	}
	note := ""
	if failed.Bool() {
		note = failedResult
	}
	w.object(func() {
		w.raw("role", `"tool"`)
		w.raw("tool_call_id", id.Raw)
		switch {
		case content.Type == gjson.Null:
			w.text("content", note)
		case content.Type == gjson.String:
			w.name("content")
			w.out = append(append(w.out, '"'), inside(gjson.Parse(string(jsonedit.Quote(note))))...)
			w.out = append(w.out, content.Raw[1:]...)
		default:
			pictures = w.resultParts(content, place+".content", note)
		}
	})
	return pictures
}

// resultParts writes the content of a result that is blocks, without pictures.
func (w *messagesWriter) resultParts(content gjson.Result, place, note string) (pictures int) {
	w.list("content", func() {
		if note != "" {
			w.part(string(jsonedit.Quote(note)))
		}
		w.elements(content, place, func(i int, inner gjson.Result) {
			at := place + "[" + strconv.Itoa(i) + "]"
			switch inner.Get("type").Str {
			case "text":
				w.textBlock(inner, at)
			case "image", "document":
				pictures++
			default:
				w.unknown(at)
			}
		})
		if !w.comma {
			w.part(`""`)
		}
	})
	return pictures
}

// pictures writes the pictures of a result, after a text that says whose they
// are.
func (w *messagesWriter) pictures(result gjson.Result, place string) {
	content := result.Get("content")
	if !content.IsArray() {
		return
	}
	told := false
	w.elements(content, place+".content", func(i int, inner gjson.Result) {
		if kind := inner.Get("type").Str; kind == "image" || kind == "document" {
			if !told {
				told = true
				w.part(`"Of the result of the tool call ` + inside(result.Get("tool_use_id")) + `:"`)
			}
			w.block(inner, fmt.Sprintf("%s.content[%d]", place, i))
		}
	})
}

// assistant writes a message of the assistant: its texts, its reasoning and the
// functions that it called.
func (w *messagesWriter) assistant(content gjson.Result, place string) {
	w.object(func() {
		w.raw("role", `"assistant"`)
		if content.Type == gjson.String {
			w.raw("content", content.Raw)
			return
		}
		var said, thoughts, calls []gjson.Result
		w.elements(content, place, func(i int, block gjson.Result) {
			at := fmt.Sprintf("%s[%d]", place, i)
			switch block.Get("type").Str {
			case "text":
				if w.isText(block.Get("text"), at+".text") {
					said = append(said, block.Get("text"))
				}
			case "thinking":
				if w.isText(block.Get("thinking"), at+".thinking") {
					thoughts = append(thoughts, block.Get("thinking"))
				}
			case "tool_use":
				if w.isText(block.Get("id"), at+".id") && w.isText(block.Get("name"), at+".name") {
					calls = append(calls, block)
				}
				if !block.Get("input").IsObject() {
					w.want(at+".input", "an object")
				}
			default:
				w.unknown(at)
			}
		})
		if w.problem == nil {
			w.saidAndCalled(said, thoughts, calls)
		}
	})
}

// saidAndCalled writes the members of an assistant's message.
func (w *messagesWriter) saidAndCalled(said, thoughts, calls []gjson.Result) {
	if len(thoughts) > 0 {
		w.joined("reasoning_content", thoughts)
	}
	if len(said) > 0 {
		w.joined("content", said)
	}
	if len(calls) == 0 {
		return
	}
	w.list("tool_calls", func() {
		for _, call := range calls {
			w.call(call.Get("id").Raw, call.Get("name").Raw, string(jsonedit.Quote(call.Get("input").Raw)))
		}
	})
}

// joined writes texts one after the other as one.
func (w *writer) joined(name string, texts []gjson.Result) {
	w.name(name)
	w.out = append(w.out, '"')
	for _, text := range texts {
		w.out = append(w.out, inside(text)...)
	}
	w.out = append(w.out, '"')
}

// call writes the call of a function, whose values are JSON strings.
func (w *writer) call(id, name, arguments string) {
	w.object(func() {
		w.raw("id", id)
		w.raw("type", `"function"`)
		w.inner("function", func() {
			w.raw("name", name)
			w.raw("arguments", arguments)
		})
	})
}

// tool writes a tool as a function.
func (w *messagesWriter) tool(i int, tool gjson.Result) {
	place := fmt.Sprintf("tools[%d]", i)
	if kind := tool.Get("type"); kind.Type == gjson.String && kind.Str != "custom" {
		w.unknown(place)
		return
	}
	w.object(func() {
		w.raw("type", `"function"`)
		w.inner("function", func() {
			w.members(tool, place, func(name string, value gjson.Result) {
				switch name {
				case "type", "cache_control", "eager_input_streaming":
				case "name", "description", "strict":
					w.raw(name, value.Raw)
				case "input_schema":
					w.raw("parameters", value.Raw)
				default:
					w.unknown(below(place, name))
				}
			})
			w.isText(tool.Get("name"), place+".name")
		})
	})
}

// toolChoice writes tool_choice, and whether calls may be parallel.
func (w *messagesWriter) toolChoice(value gjson.Result) {
	w.members(value, "tool_choice", func(name string, value gjson.Result) {
		if name != "type" && name != "name" && name != "disable_parallel_tool_use" {
			w.unknown("tool_choice." + name)
		}
	})
	switch value.Get("type").Str {
	case "auto":
		w.raw("tool_choice", `"auto"`)
	case "any":
		w.raw("tool_choice", `"required"`)
	case "none":
		w.raw("tool_choice", `"none"`)
	case "tool":
		if name := value.Get("name"); w.isText(name, "tool_choice.name") {
			w.namedChoice(name.Raw)
		}
	default:
		w.refuse("tool_choice.type", apierror.InvalidValue, "tool_choice.type: expected auto, any, tool or none.")
	}
	if value.Get("disable_parallel_tool_use").Bool() {
		w.raw("parallel_tool_calls", "false")
	}
}

// namedChoice writes the choice of a function by its name, which is JSON.
func (w *writer) namedChoice(name string) {
	w.inner("tool_choice", func() {
		w.raw("type", `"function"`)
		w.inner("function", func() { w.raw("name", name) })
	})
}

// The budgets of thinking, in tokens, up to which an effort is low or medium.
const lowBudget, mediumBudget = 4096, 16384

// thinking writes whether the model reasons: with the templates that take it as
// their own option, and otherwise as an effort.
func (w *messagesWriter) thinking(value gjson.Result) {
	budget := value.Get("budget_tokens")
	w.members(value, "thinking", func(name string, _ gjson.Result) {
		if name != "type" && name != "budget_tokens" && name != "display" {
			w.unknown("thinking." + name)
		}
	})
	switch kind := value.Get("type").Str; {
	case kind != "enabled" && kind != "adaptive" && kind != "disabled":
		w.refuse("thinking.type", apierror.InvalidValue, "thinking.type: expected enabled, adaptive or disabled.")
	case kind == "enabled" && budget.Type != gjson.Number:
		w.want("thinking.budget_tokens", "an integer")
	case w.row.TemplateKwargs:
		w.inner("chat_template_kwargs", func() { w.raw("enable_thinking", strconv.FormatBool(kind != "disabled")) })
	case kind == "enabled" && budget.Int() <= lowBudget:
		w.raw("reasoning_effort", `"low"`)
	case kind == "enabled" && budget.Int() <= mediumBudget:
		w.raw("reasoning_effort", `"medium"`)
	case kind == "enabled":
		w.raw("reasoning_effort", `"high"`)
	}
}

// outputConfig writes the effort and the schema of the answer.
func (w *messagesWriter) outputConfig(value gjson.Result) {
	w.members(value, "output_config", func(name string, value gjson.Result) {
		switch name {
		case "effort":
			if w.isText(value, "output_config.effort") {
				w.raw("reasoning_effort", value.Raw)
			}
		case "format":
			if value.Get("type").Str != "json_schema" || !value.Get("schema").IsObject() {
				w.unknown("output_config.format")
				return
			}
			w.schema(`"answer"`, value.Get("schema").Raw, gjson.Result{}, gjson.Result{Type: gjson.True, Raw: "true"})
		default:
			w.unknown("output_config." + name)
		}
	})
}

// schema writes the schema that the answer has to follow.
func (w *writer) schema(name, schema string, description, strict gjson.Result) {
	w.inner("response_format", func() {
		w.raw("type", `"json_schema"`)
		w.inner("json_schema", func() {
			w.raw("name", name)
			w.raw("schema", schema)
			if description.Exists() {
				w.raw("description", description.Raw)
			}
			if strict.Exists() {
				w.raw("strict", strict.Raw)
			}
		})
	})
}
