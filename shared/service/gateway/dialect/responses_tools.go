package dialect

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/apierror"
)

// maxSpelled limits the total bytes of namespaces in a chat request, in which every function repeats its namespace.
const maxSpelled = 1 << 20

type function struct{ space, name string }

// namespace groups functions. Its members are read only once, because gjson searches for them from
// the start of the object.
type namespace struct{ name, description gjson.Result }

func (f function) inChat() string { return f.space + "__" + f.name }

func (w *responsesWriter) tool(i int, tool gjson.Result) {
	place := fmt.Sprintf("tools[%d]", i)
	switch tool.Get("type").Str {
	case "function":
		w.function(tool, place, namespace{})
	case "custom":
		w.custom(tool, place)
	case "namespace":
		space := namespace{tool.Get("name"), tool.Get("description")}
		w.isText(space.name, place+".name")
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
					w.function(inner, at, space)
				})
			default:
				w.unknown(below(place, name))
			}
		})
	default:
		w.unknown(place)
	}
}

// function writes a function. If it is in a namespace, its name and description get a prefix.
func (w *responsesWriter) function(tool gjson.Result, place string, space namespace) {
	if w.spelled += len(space.name.Str) + len(space.description.Str); w.spelled > maxSpelled {
		w.reject(place, apierror.ArrayTooLong, "%s: the namespaces' names and descriptions are too long for this many functions.", place)
		return
	}
	w.object(func() {
		w.raw("type", `"function"`)
		w.inner("function", func() {
			w.members(tool, place, func(name string, value gjson.Result) {
				switch name {
				case "type":
				case "name":
					if !w.isText(value, place+".name") || !space.name.Exists() {
						w.raw(name, value.Raw)
						return
					}
					f := function{strings.Clone(space.name.Str), strings.Clone(value.Str)}
					w.spaces[f.inChat()] = f
					w.text(name, f.inChat())
				case "description":
					if about := space.description; about.Type == gjson.String && value.Type == gjson.String {
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

type picture struct {
	call, part gjson.Result
	place      string
}

// showPictures writes the images in tool results as a user message, because few servers accept
// images in a tool message.
func (w *responsesWriter) showPictures() {
	if len(w.pictures) == 0 {
		return
	}
	w.object(func() {
		w.raw("role", `"user"`)
		w.list("content", func() {
			for i, p := range w.pictures {
				if i == 0 || w.pictures[i-1].call.Raw != p.call.Raw {
					w.writer.part(`"From the result of the tool call ` + inside(p.call) + `:"`)
				}
				w.part(p.part, p.place)
			}
		})
	})
	w.pictures = nil
}
