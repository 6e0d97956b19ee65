package request

import (
	"bytes"
	"errors"
	"io"
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

// jsonReader reads a body once and checks that it is I-JSON (RFC 7493): UTF-8 without lone
// surrogates, and without duplicate names in an object.
type jsonReader struct {
	body     []byte
	source   bytes.Buffer
	decoder  jsontext.Decoder
	skeleton skeleton
	// large means that the names in the body may take up a lot of memory.
	large      bool
	name, text []byte
}

var jsonReaders = sync.Pool{New: func() any { return new(jsonReader) }}

func newJSONReader(body []byte) *jsonReader {
	r := jsonReaders.Get().(*jsonReader)
	r.read(body)
	return r
}

func (r *jsonReader) read(body []byte) {
	r.body, r.large = body, r.large || len(body) > maxReaderBuffer
	r.skeleton.reset()
	if len(body) >= largeBody && r.skeleton.cutOut(body, longText) {
		body = r.skeleton.bytes
	}
	r.source = *bytes.NewBuffer(body)
	r.decoder.Reset(&r.source)
}

func (r *jsonReader) offset() int { return r.skeleton.original(int(r.decoder.InputOffset())) }

// located adds the body offset to a syntax error.
func (r *jsonReader) located(err error) error {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if len(r.skeleton.cuts) == 0 || !ok {
		return err
	}
	located := *syntax
	located.ByteOffset = int64(r.skeleton.original(int(syntax.ByteOffset)))
	return &located
}

// reset releases the body and large buffers. Values returned earlier become invalid.
func (r *jsonReader) reset() {
	if r.large {
		*r = jsonReader{}
	}
	r.read(nil)
	if max(cap(r.name), cap(r.text)) > maxReaderBuffer {
		r.name, r.text = nil, nil
	}
}

func (r *jsonReader) free() {
	r.reset()
	jsonReaders.Put(r)
}

// kind returns the kind of the next token: '{', '[', '"', '0', 't', 'f', 'n', '}' or ']'. If the
// JSON is invalid, it returns 0, and the next read returns the error.
func (r *jsonReader) kind() jsontext.Kind { return r.decoder.PeekKind() }

func (r *jsonReader) value() (jsontext.Value, span, error) {
	value, err := r.decoder.ReadValue()
	end := int(r.decoder.InputOffset())
	at := span{r.skeleton.original(end - len(value)), r.skeleton.original(end)}
	if err != nil {
		return nil, at, r.located(err)
	}
	return r.body[at.start:at.end:at.end], at, nil
}

// open reads the opening bracket of an object or array and returns its offset. Read the members or
// elements until kind returns the closing bracket, or 0 for invalid JSON.
func (r *jsonReader) open() (int, error) {
	_, err := r.decoder.ReadToken()
	return r.offset() - 1, r.located(err)
}

func (r *jsonReader) close(start int) (span, error) {
	_, err := r.decoder.ReadToken()
	return span{start, r.offset()}, r.located(err)
}

// key reads a member's name, which is valid until the next name is read.
func (r *jsonReader) key() ([]byte, span, error) {
	value, at, err := r.value()
	if err != nil {
		return nil, at, err
	}
	name := value[1 : len(value)-1]
	if bytes.IndexByte(name, '\\') < 0 {
		return name, at, nil
	}
	r.name, err = jsontext.AppendUnquote(r.name[:0], value)
	return r.name, at, err
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

func (r *jsonReader) end() error {
	_, err := r.decoder.ReadToken()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		return errors.New("the body has more data after its JSON object")
	}
	return r.located(err)
}

// atMost reports whether a text contains a character at most n times.
func atMost(n int, text []byte, character string) bool {
	return len(text) <= n || bytes.Count(text, []byte(character)) <= n
}

// checkNesting checks the depth and the numbers of members and values before the body is parsed.
func (r *jsonReader) checkNesting() *apierror.Error {
	body := r.source.Bytes() // long strings are already cut out
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
func notJSON(err error) *apierror.Error {
	var syntax *jsontext.SyntacticError
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
