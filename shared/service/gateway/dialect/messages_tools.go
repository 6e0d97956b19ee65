package dialect

import (
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

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

func (w *messagesWriter) toolChoice(value gjson.Result) {
	w.only(value, "tool_choice", "type", "name", "disable_parallel_tool_use")
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
		w.reject("tool_choice.type", apierror.InvalidValue, "tool_choice.type: expected auto, any, tool or none.")
	}
	if value.Get("disable_parallel_tool_use").Bool() {
		w.raw("parallel_tool_calls", "false")
	}
}

// failedResult precedes the content of a failed result, because tool messages have no error flag.
const failedResult = "The tool failed:\n"

// toolResult writes a tool message. It returns how many images the next message must contain.
func (w *messagesWriter) toolResult(block gjson.Result, place string) (pictures int) {
	w.only(block, place, "type", "tool_use_id", "content", "is_error", "cache_control")
	id, content, failed := block.Get("tool_use_id"), block.Get("content"), block.Get("is_error")
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

// pictures writes a result's images after a text that identifies the call.
func (w *messagesWriter) pictures(result gjson.Result, place string) {
	content := result.Get("content")
	if !content.IsArray() {
		return
	}
	introduced := false
	w.elements(content, place+".content", func(i int, inner gjson.Result) {
		if kind := inner.Get("type").Str; kind == "image" || kind == "document" {
			if !introduced {
				introduced = true
				w.part(`"From the result of the tool call ` + inside(result.Get("tool_use_id")) + `:"`)
			}
			w.block(inner, fmt.Sprintf("%s.content[%d]", place, i))
		}
	})
}
