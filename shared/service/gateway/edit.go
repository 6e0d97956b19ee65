package gateway

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"
)

// edit replaces text[from:to] of a JSON text, or inserts if both are the same.
type edit struct {
	from, to int
	with     []byte
}

// appendEdited appends the text with the edits applied, which do not overlap;
// all else is copied unchanged.
func appendEdited(out, text []byte, edits []edit) []byte {
	sortEdits(edits)
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.from]...), e.with...)
		at = e.to
	}
	return append(out, text[at:]...)
}

// sortEdits sorts edits by their place in the text.
func sortEdits(edits []edit) {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
}

// Edited is a JSON text with edits that are applied as it is written, so that
// the text is not in memory twice.
type Edited struct {
	text []byte
	// edits are sorted by their place in the text.
	edits  []edit
	length int
}

// Len is the length of the edited text, in bytes.
func (e Edited) Len() int { return e.length }

// Bytes returns the edited text.
func (e Edited) Bytes() []byte {
	out := bytes.NewBuffer(make([]byte, 0, e.length))
	e.writeTo(out)
	return out.Bytes()
}

// reader returns a reader of the edited text. A text whose buffer may be reused
// by another request is copied first.
func (e Edited) reader() io.Reader {
	if len(e.text) <= trustedLength {
		return bytes.NewReader(e.Bytes())
	}
	pieces, at := make([]io.Reader, 0, 2*len(e.edits)+1), 0
	for _, change := range e.edits {
		pieces = append(pieces, bytes.NewReader(e.text[at:change.from]), bytes.NewReader(change.with))
		at = change.to
	}
	return io.MultiReader(append(pieces, bytes.NewReader(e.text[at:]))...)
}

// writeTo writes the edited text to a writer that remembers its first error.
func (e Edited) writeTo(w io.Writer) {
	at := 0
	for _, change := range e.edits {
		_, _ = w.Write(e.text[at:change.from])
		_, _ = w.Write(change.with)
		at = change.to
	}
	_, _ = w.Write(e.text[at:])
}

// replace returns the edit that replaces a value found by gjson.
func replace(value gjson.Result, with []byte) edit {
	return edit{value.Index, value.Index + len(value.Raw), with}
}

// insertMembers returns the edit that inserts members at the start of an object
// found by gjson.
func insertMembers(object gjson.Result, members ...string) edit {
	with := strings.Join(members, ",")
	if !isEmptyObject(object) {
		with += ","
	}
	at := object.Index + 1
	return edit{at, at, []byte(with)}
}

func isEmptyObject(object gjson.Result) bool {
	empty := true
	object.ForEach(func(_, _ gjson.Result) bool {
		empty = false
		return false
	})
	return empty
}

// validUTF8 returns the text with invalid UTF-8 replaced, because clients
// refuse such JSON as a whole. A valid text is returned as it is.
func validUTF8(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd"))
}

// unsafeString returns bytes as a string without copying them; they must not
// change while it is used.
func unsafeString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// parseObject reads a text as one JSON object; ok is false if it is not one, or
// is nested too deeply: gjson takes a stack frame for each level, and megabytes
// of brackets would end the process. The Index of the result and of its members
// counts from the start of the text.
func parseObject(text []byte) (object gjson.Result, ok bool) {
	s := unsafeString(text)
	if tooDeep(text) || !gjson.Valid(s) {
		return gjson.Result{}, false
	}
	object = gjson.Parse(s)
	return object, object.IsObject()
}
