package dialect

import (
	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// writer appends JSON, and keeps the first problem of a request.
type writer struct {
	out     []byte
	problem *apierror.Error
	// comma reports whether a member or an element precedes the next one.
	comma bool
}

// next writes the comma before another member or element.
func (w *writer) next() {
	if w.comma {
		w.out = append(w.out, ',')
	}
	w.comma = true
}

// open and close write brackets.
func (w *writer) open(bracket byte)  { w.out, w.comma = append(w.out, bracket), false }
func (w *writer) close(bracket byte) { w.out, w.comma = append(w.out, bracket), true }

// name writes a member's name; its value follows.
func (w *writer) name(name string) {
	w.next()
	w.out = append(append(append(w.out, '"'), name...), '"', ':')
}

// raw writes a member whose value is JSON already.
func (w *writer) raw(name, value string) {
	w.name(name)
	w.out = append(w.out, value...)
}

// text writes a member whose value is a text.
func (w *writer) text(name, value string) {
	w.name(name)
	w.out = append(w.out, jsonedit.Quote(value)...)
}

// object writes an object as an element; members write what is in it.
func (w *writer) object(members func()) {
	w.next()
	w.open('{')
	members()
	w.close('}')
}

// list writes a member that is an array.
func (w *writer) list(name string, elements func()) {
	w.name(name)
	w.open('[')
	elements()
	w.close(']')
}

// inner writes a member that is an object.
func (w *writer) inner(name string, members func()) {
	w.name(name)
	w.open('{')
	members()
	w.close('}')
}

// refuse keeps a problem, unless there is one already.
func (w *writer) refuse(param, code, format string, args ...any) {
	if w.problem == nil {
		w.problem = apierror.Invalid(param, code, format, args...)
	}
}

// unknown refuses a member or a type that chat cannot carry.
func (w *writer) unknown(place string) {
	w.refuse(place, apierror.UnknownParameter,
		"%s: chat cannot carry it, and the model's servers serve nothing else.", place)
}

// want refuses a value of the wrong type.
func (w *writer) want(place, kind string) {
	w.refuse(place, apierror.InvalidType, "%s: expected %s.", place, kind)
}

// isText checks that a value is a string.
func (w *writer) isText(value gjson.Result, place string) bool {
	if value.Type != gjson.String {
		w.want(place, "a string")
	}
	return value.Type == gjson.String
}

// members calls yield for the members of an object that are not null.
func (w *writer) members(object gjson.Result, place string, yield func(name string, value gjson.Result)) {
	if !object.IsObject() {
		w.want(place, "an object")
		return
	}
	object.ForEach(func(key, value gjson.Result) bool {
		if value.Type != gjson.Null {
			yield(key.Str, value)
		}
		return w.problem == nil
	})
}

// elements calls yield for the elements of an array.
func (w *writer) elements(array gjson.Result, place string, yield func(i int, value gjson.Result)) {
	if !array.IsArray() {
		w.want(place, "an array")
		return
	}
	i := 0
	array.ForEach(func(_, value gjson.Result) bool {
		yield(i, value)
		i++
		return w.problem == nil
	})
}

// inside returns what is between the quotes of a JSON string.
func inside(value gjson.Result) string { return value.Raw[1 : len(value.Raw)-1] }

// below joins the place of an object and the name of a member.
func below(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

// part writes a part of text, which is JSON already.
func (w *writer) part(text string) {
	w.object(func() {
		w.raw("type", `"text"`)
		w.raw("text", text)
	})
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

// namedChoice writes the choice of a function by its name, which is JSON.
func (w *writer) namedChoice(name string) {
	w.inner("tool_choice", func() {
		w.raw("type", `"function"`)
		w.inner("function", func() { w.raw("name", name) })
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
