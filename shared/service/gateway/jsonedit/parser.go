package jsonedit

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// Parser parses one text after the other, and records where values end, so that ForEach does not have to search. The
// results of a parse are valid until the next one. gjson's own ForEach returns wrong values of Index for them.
type Parser struct {
	text []byte
	// strict means that the text must be I-JSON (RFC 7493): UTF-8 without lone surrogates, and without duplicate names in
	// an object. names has the names in the objects around the current place. It is used only for such texts.
	strict bool
	names  []string
	// ends has three numbers for each member or element: twice the index of the end of its name, twice the index of the
	// end of its value, and how many of the next numbers are about values inside its value. The first two are odd if the
	// text has escapes.
	ends []int
	// full means that no more ends are recorded, because of maxEnds.
	full bool
}

const (
	numbers = 3
	maxEnds = numbers << 10
	invalid = -1
	// maxListed is the number of names in an object from which on they are looked up in a map.
	maxListed = 32
	// maxShort is the length of the strings that are read word by word, in bytes.
	maxShort = 64
)

// ParseObject parses a text like the method of Parser, but records nothing.
func ParseObject(text []byte) (object gjson.Result, ok bool) {
	p := Parser{text: text, full: true}
	return p.object()
}

// ParseObject parses a text as a single JSON object. ok is false for other texts, and for texts nested deeper than
// MaxDepth, because megabytes of brackets would crash the process. The Index values of the result and its members are
// relative to the start of the text.
func (p *Parser) ParseObject(text []byte) (object gjson.Result, ok bool) {
	*p = Parser{text: text, ends: p.ends[:0]}
	if object, ok = p.object(); !p.full {
		object.Indexes = p.ends
	}
	p.text = nil
	return object, ok
}

func (p *Parser) object() (object gjson.Result, ok bool) {
	start, c := skipSpace(p.text, 0)
	if c != '{' {
		return object, false
	}
	end := p.nested(start, 1)
	if end == invalid {
		return object, false
	}
	if rest, _ := skipSpace(p.text, end); rest < len(p.text) {
		return object, false
	}
	return gjson.Result{Type: gjson.JSON, Raw: unsafeString(p.text[start:end]), Index: start}, true
}

// at returns the character at an index, or 0 at the end of the text.
func at(text []byte, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return 0
}

// skipSpace returns the index of the next character that is not a space, and that character, or 0 at the end of the text.
func skipSpace(text []byte, i int) (next int, c byte) {
	for ; i < len(text); i++ {
		if c = text[i]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return i, c
		}
	}
	return i, 0
}

// nested returns the index after the object or array at index i, or invalid.
func (p *Parser) nested(i, depth int) (end int) {
	text := p.text
	isObject, closing := text[i] == '{', text[i]+2 // in ASCII
	i, c := skipSpace(text, i+1)
	if c == closing {
		return i + 1
	}
	first, known := len(p.names), map[string]bool(nil)
	for depth <= MaxDepth {
		own, name, escaped := len(p.ends), 0, 0
		if p.full = p.full || own >= maxEnds; !p.full {
			p.ends = append(p.ends, 0, 0, 0)
		}
		if isObject {
			if end, escaped = p.string(i); end == invalid || p.strict && p.repeats(i, end, escaped, first, &known) {
				break
			}
			name = 2*end + escaped
			if i, c = skipSpace(text, end); c != ':' {
				break
			}
			i, c = skipSpace(text, i+1)
		}
		switch c {
		case '"':
			end, escaped = p.string(i)
		case '{', '[':
			end, escaped = p.nested(i, depth+1), 0
		default:
			end, escaped = p.word(i), 0
		}
		if end == invalid {
			break
		}
		if !p.full {
			p.ends[own], p.ends[own+1], p.ends[own+2] = name, 2*end+escaped, len(p.ends)-own-numbers
		}
		if i, c = skipSpace(text, end); c == closing {
			p.names = p.names[:first]
			return i + 1
		}
		if c != ',' {
			break
		}
		i, c = skipSpace(text, i+1)
	}
	return invalid
}

// repeats reports whether an object already has the name at index i. The names of the object begin with the one with
// the number first. If they are many, they are also in known.
func (p *Parser) repeats(i, end, escaped, first int, known *map[string]bool) bool {
	name := unsafeString(p.text[i+1 : end-1])
	if escaped > 0 {
		name = gjson.Parse(unsafeString(p.text[i:end])).Str
	}
	own := p.names[first:]
	if len(own) < maxListed {
		p.names = append(p.names, name)
		return slices.Contains(own, name)
	}
	if *known == nil {
		*known = map[string]bool{}
		for _, each := range own {
			(*known)[each] = true
		}
	}
	repeated := (*known)[name]
	(*known)[name] = true
	return repeated
}

// value returns the index after the value at index i, or invalid. escaped is 1 for a string with escapes.
func (p *Parser) value(i int) (end, escaped int) {
	switch at(p.text, i) {
	case '"':
		return p.string(i)
	case '{', '[':
		return p.nested(i, 1), 0
	}
	return p.word(i), 0
}

// word returns the index after the number, boolean or null at index i, or invalid.
func (p *Parser) word(i int) (end int) {
	text := p.text
	end = i
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	if next := at(text, end); end > i && text[i] != '0' && (next == ',' || next == '}' || next == ']') {
		return end // the usual numbers
	}
	for end < len(text) && text[end] > ' ' && text[end] != ',' && text[end] != '}' && text[end] != ']' {
		end++
	}
	if !gjson.Valid(unsafeString(text[i:end])) {
		return invalid
	}
	return end
}

// string returns the index after the string at index i, or invalid. escaped is 1 if the string has escapes.
func (p *Parser) string(i int) (end, escaped int) {
	text := p.text
	if at(text, i) != '"' {
		return invalid, 0
	}
	// This is faster for short strings than the rest.
	most := min(i+maxShort, len(text)-8)
	for end = i + 1; end <= most; end += 8 {
		a := binary.LittleEndian.Uint64(text[end:])
		quotes, slashes := a^'"'*ones, a^'\\'*ones
		// Each subtraction sets the highest bit of the characters in question. Borrows set only bits above them.
		if marks := ((a - spaces) | a | (quotes - ones) | (slashes - ones)) & highs; marks != 0 {
			if end += bits.TrailingZeros64(marks) / 8; text[end] == '"' {
				return end + 1, 0
			}
			break
		}
	}
	if end = EndOfString(text, i); end == len(text) {
		return invalid, 0
	}
	inside, unicode := text[i+1:end], false
	for slash := bytes.IndexByte(inside, '\\'); slash >= 0; slash = bytes.IndexByte(inside, '\\') {
		escaped = 1
		if unicode = unicode || inside[slash+1] == 'u'; !isEscape(inside[slash+1]) {
			return invalid, 0
		}
		inside = inside[slash+2:]
	}
	inside = skipPlain(text[i+1 : end])
	end++
	if hasControl(inside) || p.strict && !utf8.Valid(inside) || unicode && !p.isUnicode(text[i:end]) {
		return invalid, 0
	}
	return end, escaped
}

// isUnicode checks a string with four-digit escapes.
func (p *Parser) isUnicode(text []byte) bool {
	if p.strict {
		_, err := jsontext.AppendUnquote(nil, text)
		return err == nil
	}
	return gjson.Valid(unsafeString(text))
}

func isEscape(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't', 'u':
		return true
	}
	return false
}

// ones is a word whose bytes are 1. highs marks the highest bit of each byte. spaces is a word of spaces.
const (
	ones   = 0x0101010101010101
	highs  = 0x80 * ones
	spaces = ' ' * ones
)

// skipPlain skips blocks of ASCII characters without control characters.
func skipPlain(text []byte) (rest []byte) {
	for ; len(text) >= 32; text = text[32:] { // the processor handles four words in parallel
		a, b := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
		c, d := binary.LittleEndian.Uint64(text[16:]), binary.LittleEndian.Uint64(text[24:])
		// Subtracting a space sets the highest bit of a control character.
		if ((a-spaces)|a|(b-spaces)|b|(c-spaces)|c|(d-spaces)|d)&highs != 0 {
			break
		}
	}
	return text
}

func hasControl(text []byte) bool {
	for ; len(text) >= 8; text = text[8:] {
		// A mark that is only due to a borrow is above the mark of a control character.
		if a := binary.LittleEndian.Uint64(text); (a-spaces)&^a&highs != 0 {
			return true
		}
	}
	for _, c := range text {
		if c < ' ' {
			return true
		}
	}
	return false
}
