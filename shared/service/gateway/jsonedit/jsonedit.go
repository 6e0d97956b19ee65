// Package jsonedit edits JSON in place and leaves all other bytes unchanged.
package jsonedit

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

const (
	// MaxDepth is the maximum nesting depth of arrays and objects. At about a thousand levels,
	// model servers fail, and some crash.
	MaxDepth = 128
	// maxCopy is the size of the largest text that Reader copies, in bytes.
	maxCopy = 64 << 10
)

// Edit replaces the bytes [From:To] of a JSON text with the content of With.
type Edit struct {
	From, To int
	With     []byte
}

// Append appends the text with the edits applied. It sorts the edits, which must not overlap.
func Append(out, text []byte, edits []Edit) []byte {
	sortEdits(edits)
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.From]...), e.With...)
		at = e.To
	}
	return append(out, text[at:]...)
}

func sortEdits(edits []Edit) {
	slices.SortStableFunc(edits, func(a, b Edit) int { return a.From - b.From })
}

// Edited is a JSON text whose edits are applied during writing, so that only one copy is in memory.
type Edited struct {
	text   []byte
	edits  []Edit
	length int
}

// New returns the text with the edits, which must not overlap. It sorts them.
func New(text []byte, edits []Edit) Edited {
	sortEdits(edits)
	length := len(text)
	for _, e := range edits {
		length += len(e.With) - (e.To - e.From)
	}
	return Edited{text, edits, length}
}

func (e Edited) Len() int { return e.length }

func (e Edited) Bytes() []byte {
	out := bytes.NewBuffer(make([]byte, 0, e.length))
	e.CopyTo(out)
	return out.Bytes()
}

// Reader returns a reader of the edited text. It copies a short text, because an abandoned call may still be sending
// the text when its buffer is reused.
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

// CopyTo writes the edited text to a writer, which must remember its first error.
func (e Edited) CopyTo(w io.Writer) {
	at := 0
	for _, change := range e.edits {
		_, _ = w.Write(e.text[at:change.From])
		_, _ = w.Write(change.With)
		at = change.To
	}
	_, _ = w.Write(e.text[at:])
}

func Replace(value gjson.Result, with []byte) Edit {
	return Edit{value.Index, value.Index + len(value.Raw), with}
}

// InsertMembers returns an edit that inserts members at the start of a gjson object.
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

// ValidUTF8 replaces invalid UTF-8, because clients reject JSON that contains it.
func ValidUTF8(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd"))
}

func Quote(text string) []byte { return AppendQuote(nil, text) }

// AppendQuote appends a JSON string that is at most twice as long as valid JSON input. It escapes
// neither "<" nor "&", unlike json.Marshal, whose output may be six times as long.
func AppendQuote(out []byte, text string) []byte {
	out = slices.Grow(out, len(text)+strings.Count(text, `"`)+strings.Count(text, `\`)+2)
	out, _ = jsontext.AppendQuote(out, text) // an error only means that invalid UTF-8 was replaced
	return out
}

// unsafeString converts bytes to a string without copying. The bytes must not change while the string is in use.
func unsafeString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// ParseObject parses a text as a single JSON object. ok is false for other texts. It is also false for texts nested
// deeper than MaxDepth, because gjson uses a stack frame per level and megabytes of brackets would crash the process.
// The Index values of the result and its members are relative to the start of the text.
func ParseObject(text []byte) (object gjson.Result, ok bool) {
	s := unsafeString(text)
	if tooDeep(text) || !gjson.Valid(s) {
		return gjson.Result{}, false
	}
	object = gjson.Parse(s)
	return object, object.IsObject()
}

// tooDeep reports whether a text, which need not be valid JSON, is nested deeper than MaxDepth.
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

// EndOfString returns the index of the quote that closes the string at the given index, or len(body) if the string is
// not closed.
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
