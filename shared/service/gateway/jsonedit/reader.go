package jsonedit

import "github.com/go-json-experiment/json/jsontext"

// Reader reads the tokens of a valid JSON text in order.
type Reader struct {
	text   []byte
	parser Parser
	// at is the index of the next token, and inside is the number of objects and arrays around it.
	at, inside int
	// known has the numbers of the parser, or is empty if there are too many. left has those about values after `at`.
	known, left []int
}

// maxKeptNames is the number of names for which a reader keeps memory.
const maxKeptNames = 256

// Parse starts to read a text if it is an object in I-JSON that is nested at most MaxDepth deep. Otherwise it returns
// false.
func (r *Reader) Parse(text []byte) bool {
	p := Parser{text: text, strict: true, ends: r.parser.ends[:0], names: r.parser.names[:0]}
	_, ok := p.object()
	r.known = nil
	if !p.full {
		r.known = p.ends
	}
	clear(p.names[:cap(p.names)])
	if p.full, p.strict = true, false; cap(p.names) > maxKeptNames {
		p.names = nil
	}
	r.text, r.parser = text, p
	r.Rewind()
	return ok
}

// Read starts to read a text that is known to be valid.
func (r *Reader) Read(text []byte) {
	r.text, r.known = text, nil
	r.parser.text, r.parser.full = text, true
	r.Rewind()
}

// Rewind goes back to the start of the text.
func (r *Reader) Rewind() { r.at, r.inside, r.left = 0, 0, r.known }

// Kind returns the kind of the next token, or 0 at the end of the text.
func (r *Reader) Kind() jsontext.Kind {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r', ',', ':':
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			return '0'
		default:
			return jsontext.Kind(c)
		}
	}
	return 0
}

// Value reads a value and returns its start and end.
func (r *Reader) Value() (start, end int) {
	r.Kind()
	start = r.at
	if len(r.left) > 0 && r.inside > 0 {
		end, r.left = r.left[1]>>1, r.left[numbers+r.left[2]:]
	} else {
		end, _ = r.parser.value(start)
	}
	r.at = end
	return start, end
}

// Key reads the name of a member and returns its start and end.
func (r *Reader) Key() (start, end int) {
	r.Kind()
	start = r.at
	if len(r.left) > 0 {
		end = r.left[0] >> 1
	} else {
		end, _ = r.parser.string(start)
	}
	r.at = end
	return start, end
}

// Open reads an opening bracket and returns its index. Read the members or elements until Kind returns the closing
// bracket.
func (r *Reader) Open() (start int) {
	r.Kind()
	if len(r.left) > 0 && r.inside > 0 {
		r.left = r.left[numbers:]
	}
	r.at++
	r.inside++
	return r.at - 1
}

// Close reads a closing bracket and returns the index after it.
func (r *Reader) Close() (end int) {
	r.Kind()
	r.at++
	r.inside--
	return r.at
}
