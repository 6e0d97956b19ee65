package dialect

import (
	"fmt"

	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/apierror"
)

func (w *messagesWriter) system(value gjson.Result) {
	if value.Type == gjson.Null {
		return
	}
	w.object(func() {
		w.raw("role", `"system"`)
		w.content(value, "system")
	})
}

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

func (w *messagesWriter) message(i int, value gjson.Result) {
	place := fmt.Sprintf("messages[%d]", i)
	role, content := value.Get("role").Str, value.Get("content")
	w.only(value, place, "role", "content")
	switch {
	case w.problem != nil:
	case role == "assistant":
		w.assistant(content, place+".content")
	case role == "system":
		w.system(content)
	case role != "user":
		w.reject(place+".role", apierror.InvalidValue, "%s.role: expected user or assistant.", place)
	case content.Type == gjson.String:
		w.object(func() {
			w.raw("role", `"user"`)
			w.raw("content", content.Raw)
		})
	default:
		w.user(content, place+".content")
	}
}

// user writes the tool results as separate messages, followed by the other blocks and the results' images. Few
// servers accept images in a tool message.
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

func (w *messagesWriter) image(block gjson.Result, place string) {
	source := block.Get("source")
	w.only(source, place+".source", "type", "data", "url", "media_type")
	kind, data, address, media := source.Get("type"), source.Get("data"), source.Get("url"), source.Get("media_type")
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

// document writes a text document as text, and a PDF as a file.
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
			w.call(call.Get("id").Raw, call.Get("name").Raw, func() { w.text("arguments", call.Get("input").Raw) })
		}
	})
}
