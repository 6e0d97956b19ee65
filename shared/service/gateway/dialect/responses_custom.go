package dialect

import (
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/jsonedit"
)

// Custom tools take text. Model servers do not support them, so each becomes a function with one parameter.

const customParameters = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`

// custom writes a custom tool as a function. It rejects a tool with a grammar, which a function cannot enforce.
func (w *responsesWriter) custom(tool gjson.Result, place string) {
	name := tool.Get("name")
	if !w.isText(name, place+".name") {
		return
	}
	w.customs[strings.Clone(name.Str)] = true
	w.object(func() {
		w.raw("type", `"function"`)
		w.inner("function", func() {
			w.members(tool, place, func(member string, value gjson.Result) {
				switch member {
				case "type":
				case "name", "description":
					w.raw(member, value.Raw)
				case "format":
					if kind := value.Get("type").Str; kind != "text" {
						w.unknown(below(place, member))
					}
				default:
					w.unknown(below(place, member))
				}
			})
			w.raw("parameters", customParameters)
		})
	})
}

// freeText returns the text in a custom tool's arguments. Both are JSON without quotes. Arguments
// in any other format are returned unchanged.
func freeText(arguments []byte) string {
	if object, ok := jsonedit.ParseObject(unquoted(arguments)); ok {
		if input := object.Get("input"); input.Type == gjson.String {
			return inside(input)
		}
	}
	return string(arguments)
}
