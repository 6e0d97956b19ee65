package request

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

const (
	// maxMembers limits the members of all objects in a request, because detecting duplicate names takes memory.
	maxMembers = 1 << 18
	// maxValues limits the commas in a request, and thus the values, because parsing each value takes time.
	maxValues = 1 << 20
	// maxParam limits how many bytes of a caller's field name an error repeats.
	maxParam = 256
	// maxReaderBuffer is the size in bytes of the largest buffer that a reader keeps for the next body.
	maxReaderBuffer = 16 << 10
)

type span struct{ start, end int }

// jsonReader reads a body that is I-JSON.
type jsonReader struct {
	jsonedit.Reader
	body       []byte
	name, text []byte
}

var jsonReaders = sync.Pool{New: func() any { return new(jsonReader) }}

// newJSONReader returns a reader of valid JSON.
func newJSONReader(body []byte) *jsonReader {
	r := jsonReaders.Get().(*jsonReader)
	r.read(body)
	return r
}

func (r *jsonReader) read(body []byte) {
	r.body = body
	r.Read(body)
}

// parse returns an error if the body is not exactly one JSON object, or not I-JSON.
func (r *jsonReader) parse(body []byte) *apierror.Error {
	if r.body = body; len(body) > min(maxMembers, maxValues) {
		if problem := checkNesting(body); problem != nil {
			return problem
		}
	}
	if !r.Parse(body) {
		return notJSON(body)
	}
	return nil
}

// reset releases the body and large buffers. Values returned earlier become invalid.
func (r *jsonReader) reset() {
	r.read(nil)
	if max(cap(r.name), cap(r.text)) > maxReaderBuffer {
		r.name, r.text = nil, nil
	}
}

func (r *jsonReader) free() {
	r.reset()
	jsonReaders.Put(r)
}

func (r *jsonReader) value() (jsontext.Value, span) {
	start, end := r.Value()
	return r.body[start:end:end], span{start, end}
}

// close reads the closing bracket of an object or array that starts at the given offset.
func (r *jsonReader) close(start int) span { return span{start, r.Close()} }

// key reads a member's name, which is valid until the next name is read.
func (r *jsonReader) key() ([]byte, span) {
	start, end := r.Key()
	name := r.body[start+1 : end-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		r.name, _ = jsontext.AppendUnquote(r.name[:0], r.body[start:end])
		name = r.name
	}
	return name, span{start, end}
}

// string decodes a JSON string. The result is valid until the next call.
func (r *jsonReader) string(value jsontext.Value) []byte {
	inside := value[1 : len(value)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	// The value was already validated.
	r.text, _ = jsontext.AppendUnquote(r.text[:0], value)
	return r.text
}

// atMost reports whether a text contains a character at most n times.
func atMost(n int, text []byte, character string) bool {
	return len(text) <= n || bytes.Count(text, []byte(character)) <= n
}

// checkNesting checks the depth and the numbers of members and values, even if the body is not valid.
func checkNesting(body []byte) *apierror.Error {
	// Counting brackets, colons and commas, even those inside strings, is many times faster than parsing and usually
	// enough.
	if bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) <= jsonedit.MaxDepth &&
		atMost(maxMembers, body, ":") && atMost(maxValues, body, ",") {
		return nil
	}
	depth, members, values := 0, 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = jsonedit.EndOfString(body, i)
		case '[', '{':
			if depth++; depth > jsonedit.MaxDepth {
				return apierror.Invalid("", apierror.InvalidJSON, "The body is nested deeper than %d levels.", jsonedit.MaxDepth)
			}
		case ']', '}':
			depth--
		case ',':
			if values++; values > maxValues {
				return apierror.Invalid("", apierror.InvalidJSON, "The body has more than %d values.", maxValues)
			}
		case ':':
			if members++; members > maxMembers {
				return apierror.Invalid("", apierror.InvalidJSON, "The objects in the body have more than %d members.", maxMembers)
			}
		}
	}
	return nil
}

// notJSON returns the error for a body that could not be parsed. It repeats nothing from the body except a duplicate
// name.
func notJSON(body []byte) *apierror.Error {
	if problem := checkNesting(body); problem != nil {
		return problem
	}
	var syntax *jsontext.SyntacticError
	var err error
	for decoder := jsontext.NewDecoder(bytes.NewBuffer(body)); err == nil; {
		_, err = decoder.ReadToken()
	}
	switch {
	case !errors.As(err, &syntax):
		return apierror.Invalid("", apierror.InvalidJSON, "The body must be a single JSON object.")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return apierror.Invalid(pathOf(syntax.JSONPointer), apierror.InvalidJSON, "The body contains this field twice in one object.")
	}
	return apierror.Invalid("", apierror.InvalidJSON, "The body is not valid JSON at byte %d.", syntax.ByteOffset)
}

// pathOf converts a JSON pointer to a param, such as messages[0].role.
func pathOf(pointer jsontext.Pointer) string {
	var path strings.Builder
	for token := range pointer.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 32); err == nil && path.Len() > 0 {
			path.WriteString("[" + token + "]")
			continue
		}
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(token)
	}
	if path.Len() > maxParam {
		return ""
	}
	return path.String()
}
