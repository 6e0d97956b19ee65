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

// MaxDepth is the maximum nesting depth of arrays and objects. At about a thousand levels, model servers fail, and some
// crash.
const MaxDepth = 128

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
	if len(edits) > 1 {
		slices.SortStableFunc(edits, func(a, b Edit) int { return a.From - b.From })
	}
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

// AppendPieces appends the pieces of the edited text, which are not copied.
func (e Edited) AppendPieces(pieces [][]byte) [][]byte {
	at := 0
	for _, change := range e.edits {
		pieces = append(pieces, e.text[at:change.From], change.With)
		at = change.To
	}
	return append(pieces, e.text[at:])
}

func (e Edited) Bytes() []byte { return bytes.Join(e.AppendPieces(nil), nil) }

// Reader returns a reader of the edited text, which does not copy it.
func (e Edited) Reader() io.Reader {
	var readers []io.Reader
	for _, piece := range e.AppendPieces(nil) {
		readers = append(readers, bytes.NewReader(piece))
	}
	return io.MultiReader(readers...)
}

func Replace(value gjson.Result, with []byte) Edit {
	return Edit{value.Index, value.Index + len(value.Raw), with}
}

// InsertMembers returns an edit that inserts members at the start of a gjson object.
func InsertMembers(object gjson.Result, members ...string) Edit {
	with := strings.Join(members, ",")
	if object.Raw[skipSeparators(object.Raw, 1)] != '}' {
		with += ","
	}
	at := object.Index + 1
	return Edit{at, at, []byte(with)}
}

// ForEach visits the members of an object or the elements of an array until visit returns false. The value must come
// from ParseObject. Any other value is visited itself. Unlike gjson's ForEach, it does not convert numbers, which would
// take most of the time, so visited numbers have only their text.
func ForEach(value gjson.Result, visit func(name string, value gjson.Result) bool) {
	text := value.Raw
	if value.Type != gjson.JSON || text == "" {
		if value.Exists() {
			visit("", value)
		}
		return
	}
	isObject, ends, at := text[0] == '{', value.Indexes, 0
	for i := 1; ; {
		i = skipSeparators(text, i)
		if i >= len(text) || text[i] == '}' || text[i] == ']' {
			return
		}
		var end, escaped, inside int
		name, recorded := "", len(ends) > 0
		if isObject {
			if recorded {
				end, escaped = ends[at]>>1-value.Index, ends[at]&1
			} else if end, escaped = endOf(text, i); end == invalid {
				return
			}
			name = content(text[i:end], escaped)
			i = skipSeparators(text, end)
		}
		if recorded {
			end, escaped, inside = ends[at+1]>>1-value.Index, ends[at+1]&1, at+numbers
			at = inside + ends[at+2]
		} else if end, escaped = endOf(text, i); end == invalid {
			return
		}
		visited := gjson.Result{Type: typeOf(text[i]), Raw: text[i:end], Index: value.Index + i}
		switch visited.Type {
		case gjson.String:
			visited.Str = content(visited.Raw, escaped)
		case gjson.JSON:
			visited.Indexes = ends[inside:at:at]
		}
		if i = end; !visit(name, visited) {
			return
		}
	}
}

// content returns the content of a string. escaped is 1 if it has escapes.
func content(raw string, escaped int) string {
	if escaped > 0 {
		return gjson.Parse(raw).Str
	}
	return raw[1 : len(raw)-1]
}

// endOf returns the index after the value at index i of a text that is not recorded. escaped is 1 for a string with
// escapes.
func endOf(text string, i int) (end, escaped int) {
	parser := Parser{text: unsafe.Slice(unsafe.StringData(text), len(text)), full: true}
	return parser.value(i)
}

// typeOf returns the type of the value that begins with a character.
func typeOf(first byte) gjson.Type {
	switch first {
	case '"':
		return gjson.String
	case '{', '[':
		return gjson.JSON
	case 't':
		return gjson.True
	case 'f':
		return gjson.False
	case 'n':
		return gjson.Null
	}
	return gjson.Number
}

// Member returns the first member of an object with the given name. The value must be suitable for ForEach.
func Member(object gjson.Result, name string) (found gjson.Result) {
	ForEach(object, func(key string, value gjson.Result) bool {
		if key == name {
			found = value
		}
		return key != name
	})
	return found
}

func skipSeparators(text string, i int) int {
	for i < len(text) && (text[i] <= ' ' || text[i] == ',' || text[i] == ':') {
		i++
	}
	return i
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
