package dialect

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// writer appends JSON and records the first problem of a request.
type writer struct {
	out     []byte
	problem *apierror.Error
	// comma means that a comma must precede the next member or element.
	comma bool
}

func (w *writer) next() {
	if w.comma {
		w.out = append(w.out, ',')
	}
	w.comma = true
}

func (w *writer) open(bracket byte)  { w.out, w.comma = append(w.out, bracket), false }
func (w *writer) close(bracket byte) { w.out, w.comma = append(w.out, bracket), true }

func (w *writer) name(name string) {
	w.next()
	w.out = append(append(append(w.out, '"'), name...), '"', ':')
}

func (w *writer) raw(name, value string) {
	w.name(name)
	w.out = append(w.out, value...)
}

func (w *writer) text(name, value string) {
	w.name(name)
	w.out = jsonedit.AppendQuote(w.out, value)
}

func (w *writer) object(members func()) {
	w.next()
	w.open('{')
	members()
	w.close('}')
}

func (w *writer) list(name string, elements func()) {
	w.name(name)
	w.open('[')
	elements()
	w.close(']')
}

func (w *writer) inner(name string, members func()) {
	w.name(name)
	w.open('{')
	members()
	w.close('}')
}

func (w *writer) reject(param, code, format string, args ...any) {
	if w.problem == nil {
		w.problem = apierror.Invalid(param, code, format, args...)
	}
}

// unknown reports a member or type that chat does not have.
func (w *writer) unknown(place string) {
	w.reject(place, apierror.UnknownParameter,
		"%s is not supported: the servers of this model support only chat, which has no equivalent.", place)
}

func (w *writer) want(place, kind string) {
	w.reject(place, apierror.InvalidType, "%s: expected %s.", place, kind)
}

func (w *writer) isText(value gjson.Result, place string) bool {
	if value.Type != gjson.String {
		w.want(place, "a string")
	}
	return value.Type == gjson.String
}

// members yields each non-null member of an object.
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

// only rejects an object that has other non-null members.
func (w *writer) only(object gjson.Result, place string, known ...string) {
	w.members(object, place, func(name string, _ gjson.Result) {
		if !slices.Contains(known, name) {
			w.unknown(below(place, name))
		}
	})
}

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

// inside returns a JSON string without its quotes.
func inside(value gjson.Result) string { return value.Raw[1 : len(value.Raw)-1] }

// unquoted decodes a JSON string without its quotes.
func unquoted(inside []byte) []byte {
	text, _ := jsontext.AppendUnquote(nil, slices.Concat([]byte{'"'}, inside, []byte{'"'})) // it replaces lone surrogates
	return text
}

// below appends a member's name to its object's path.
func below(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

// part writes a text part. text is JSON.
func (w *writer) part(text string) {
	w.object(func() {
		w.raw("type", `"text"`)
		w.raw("text", text)
	})
}

// picture writes an image_url part. The pieces are concatenated into a JSON string.
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

func (w *writer) joined(name string, texts []gjson.Result) {
	w.name(name)
	w.out = append(w.out, '"')
	for _, text := range texts {
		w.out = append(w.out, inside(text)...)
	}
	w.out = append(w.out, '"')
}

// call writes a function call. All values are JSON strings. The arguments callback writes the member of that name.
func (w *writer) call(id, name string, arguments func()) {
	w.object(func() {
		w.raw("id", id)
		w.raw("type", `"function"`)
		w.inner("function", func() {
			w.raw("name", name)
			arguments()
		})
	})
}

func (w *writer) namedChoice(name string) {
	w.inner("tool_choice", func() {
		w.raw("type", `"function"`)
		w.inner("function", func() { w.raw("name", name) })
	})
}

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
