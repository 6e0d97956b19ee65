// Package jsonedit changes JSON texts in place: what no edit names keeps its bytes.
// The gateway changes requests and answers with it.
package jsonedit

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"
)

const (
	// MaxDepth is how deeply arrays and objects may be nested. Model servers give
	// up at about a thousand levels, and some of them crash.
	MaxDepth = 128
	// maxCopy bounds the texts that Reader copies, in bytes.
	maxCopy = 64 << 10
)

// Edit replaces text[From:To] of a JSON text by With, or inserts With if both are
// the same.
type Edit struct {
	From, To int
	With     []byte
}

// Append appends the text with the edits applied, which must not overlap; all
// else is copied unchanged. It sorts them.
func Append(out, text []byte, edits []Edit) []byte {
	sortEdits(edits)
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.From]...), e.With...)
		at = e.To
	}
	return append(out, text[at:]...)
}

// sortEdits sorts edits by their place in the text.
func sortEdits(edits []Edit) {
	slices.SortStableFunc(edits, func(a, b Edit) int { return a.From - b.From })
}

// Edited is a JSON text with edits that are applied as it is written, so that
// the text is not in memory twice.
type Edited struct {
	text []byte
	// edits are sorted by their place in the text.
	edits  []Edit
	length int
}

// New returns the text with the edits, which must not overlap; it sorts them.
func New(text []byte, edits []Edit) Edited {
	sortEdits(edits)
	length := len(text)
	for _, e := range edits {
		length += len(e.With) - (e.To - e.From)
	}
	return Edited{text, edits, length}
}

// Len is the length of the edited text, in bytes.
func (e Edited) Len() int { return e.length }

// Bytes returns the edited text.
func (e Edited) Bytes() []byte {
	out := bytes.NewBuffer(make([]byte, 0, e.length))
	e.CopyTo(out)
	return out.Bytes()
}

// Reader returns a reader of the edited text. A short text is copied first: its
// buffer may be used again while a call that was given up is still being written.
func (e Edited) Reader() io.Reader {
	if len(e.text) <= maxCopy {
		return bytes.NewReader(e.Bytes())
	}
	pieces, at := make([]io.Reader, 0, 2*len(e.edits)+1), 0
	for _, change := range e.edits {
		pieces = append(pieces, bytes.NewReader(e.text[at:change.From]), bytes.NewReader(change.With))
		at = change.To
	}
	return io.MultiReader(append(pieces, bytes.NewReader(e.text[at:]))...)
}

// CopyTo writes the edited text to a writer that remembers its first error.
func (e Edited) CopyTo(w io.Writer) {
	at := 0
	for _, change := range e.edits {
		_, _ = w.Write(e.text[at:change.From])
		_, _ = w.Write(change.With)
		at = change.To
	}
	_, _ = w.Write(e.text[at:])
}

// Replace returns the edit that replaces a value found by gjson.
func Replace(value gjson.Result, with []byte) Edit {
	return Edit{value.Index, value.Index + len(value.Raw), with}
}

// InsertMembers returns the edit that inserts members at the start of an object
// found by gjson.
func InsertMembers(object gjson.Result, members ...string) Edit {
	with := strings.Join(members, ",")
	if !isEmptyObject(object) {
		with += ","
	}
	at := object.Index + 1
	return Edit{at, at, []byte(with)}
}

func isEmptyObject(object gjson.Result) bool {
	empty := true
	object.ForEach(func(_, _ gjson.Result) bool {
		empty = false
		return false
	})
	return empty
}

// ValidUTF8 returns the text with invalid UTF-8 replaced, because clients
// refuse such JSON as a whole. A valid text is returned as it is.
func ValidUTF8(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd"))
}

// Quote returns the text as JSON.
func Quote(text string) []byte {
	quoted, _ := json.Marshal(text) // a string is always encoded
	return quoted
}

// unsafeString returns bytes as a string without copying them; they must not
// change while it is used.
func unsafeString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// ParseObject reads a text as one JSON object; ok is false if it is not one, or
// is nested too deeply: gjson takes a stack frame for each level, and megabytes
// of brackets would end the process. The Index of the result and of its members
// counts from the start of the text.
func ParseObject(text []byte) (object gjson.Result, ok bool) {
	s := unsafeString(text)
	if tooDeep(text) || !gjson.Valid(s) {
		return gjson.Result{}, false
	}
	object = gjson.Parse(s)
	return object, object.IsObject()
}

// tooDeep reports whether a text, which need not be JSON, is nested deeper than
// MaxDepth.
func tooDeep(text []byte) bool {
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) <= MaxDepth {
		return false
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = EndOfString(text, i)
		case '[', '{':
			if depth++; depth > MaxDepth {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}

// EndOfString returns the index of the quote that ends the string starting at
// start, or the length of the body if there is none.
func EndOfString(body []byte, start int) int {
	for i := start + 1; ; i++ {
		quote := bytes.IndexByte(body[i:], '"')
		if quote < 0 {
			return len(body)
		}
		i += quote
		slashes := 0
		for body[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}
