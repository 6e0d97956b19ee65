// Package boundedjson decodes JSON of programs and callers that are not trusted. A text
// of many small values takes 40 times its length and more once it is decoded, so their
// number is limited as well as the number of bytes.
package boundedjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// LimitError is the error for a text with too many bytes or values.
type LimitError struct {
	Most int
	What string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the JSON has more than %d %s", e.Most, e.What)
}

// Read reads to the end and decodes the first text, as json.Decoder does.
//
// Errors: LimitError for more than maxBytes or maxValues; errors of the reader and of
// json.Decoder, such as io.ErrUnexpectedEOF for a text that is cut off.
func Read(from io.Reader, maxBytes, maxValues int, into any) error {
	text, err := io.ReadAll(io.LimitReader(from, int64(maxBytes)+1))
	if err != nil {
		return err
	}
	if len(text) > maxBytes {
		return &LimitError{maxBytes, "bytes"}
	}
	if hasMore(text, maxValues) {
		return &LimitError{maxValues, "values"}
	}
	return json.NewDecoder(bytes.NewReader(text)).Decode(into)
}

// Unmarshal decodes a text with json.Unmarshal. The names of members count as values.
//
// Errors: LimitError for more than maxValues; errors of json.Unmarshal.
func Unmarshal(text []byte, maxValues int, into any) error {
	if hasMore(text, maxValues) {
		return &LimitError{maxValues, "values"}
	}
	return json.Unmarshal(text, into)
}

// hasMore reports whether a text, which need not be JSON, has more than most values.
// All but the first value of an array or object follow a comma, the first an opening
// bracket, and values of members a colon.
func hasMore(text []byte, most int) bool {
	count := 1
	for _, sign := range []string{",", ":", "[", "{"} {
		count += bytes.Count(text, []byte(sign))
	}
	if count <= most { // even with the signs inside strings, which is mostly so
		return false
	}
	count = 1
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
		case !inString && (c == ',' || c == ':' || c == '[' || c == '{'):
			if count++; count > most {
				return true
			}
		}
	}
	return false
}
