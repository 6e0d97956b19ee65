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

// edit replaces text[from:to] of a JSON text; where both are the same it
// inserts.
type edit struct {
	from, to int
	with     []byte
}

// appendEdited appends the text with the edits made, which do not overlap;
// what they do not touch is copied as it is.
func appendEdited(out, text []byte, edits []edit) []byte {
	sortEdits(edits)
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.from]...), e.with...)
		at = e.to
	}
	return append(out, text[at:]...)
}

// sortEdits puts edits into the order of the text that they are of.
func sortEdits(edits []edit) {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
}

// Edited is a JSON text whose edits are made as it is written, so that it is not
// in memory twice.
type Edited struct {
	text []byte
	// edits stand in the order of the text.
	edits  []edit
	length int
}

// Len is the length of the edited text, in bytes.
func (e Edited) Len() int { return e.length }

// Bytes makes the edited text.
func (e Edited) Bytes() []byte {
	out := bytes.NewBuffer(make([]byte, 0, e.length))
	e.writeTo(out)
	return out.Bytes()
}

// reader reads the edited text, at any time: a text whose buffer may serve another
// request meanwhile is copied first.
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

// writeTo writes the edited text to a writer that keeps its first error itself.
func (e Edited) writeTo(w io.Writer) {
	at := 0
	for _, change := range e.edits {
		_, _ = w.Write(e.text[at:change.from])
		_, _ = w.Write(change.with)
		at = change.to
	}
	_, _ = w.Write(e.text[at:])
}

// replace makes an edit of a value that gjson has found.
func replace(value gjson.Result, with []byte) edit {
	return edit{value.Index, value.Index + len(value.Raw), with}
}

// insertMembers makes an edit that puts members before all others of an object
// that gjson has found.
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

// validUTF8 gives a text in which what is no UTF-8 is replaced; nearly always it is
// the very text. Clients refuse such JSON as a whole.
func validUTF8(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd"))
}

// unsafeString reads bytes as a string without copying them; they must not change while
// it is used.
func unsafeString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// parseObject reads a text as one JSON object; ok is false when it is none, or one
// nested too deep: the reader takes a frame of the stack for each level, and
// megabytes of brackets would end the process. The result's Index and those of
// its members count from the start of the text.
func parseObject(text []byte) (object gjson.Result, ok bool) {
	s := unsafeString(text)
	if tooDeep(text) || !gjson.Valid(s) {
		return gjson.Result{}, false
	}
	object = gjson.Parse(s)
	return object, object.IsObject()
}
