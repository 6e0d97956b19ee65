// Package boundedjson decodes untrusted JSON. Decoding many small values can take 40 times the JSON's length or
// more in memory, so the package limits the number of values as well as the number of bytes.
package boundedjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

type LimitError struct {
	Most int
	What string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the JSON has more than %d %s", e.Most, e.What)
}

// Read reads to the end and decodes the first JSON value, like json.Decoder. Errors: LimitError if there are more
// than maxBytes or maxValues; errors of the reader and of json.Decoder, such as io.ErrUnexpectedEOF.
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

// Unmarshal is json.Unmarshal with a limit on the number of values. Field names count as values.
// Errors: LimitError if there are more than maxValues; errors of json.Unmarshal.
func Unmarshal(text []byte, maxValues int, into any) error {
	if hasMore(text, maxValues) {
		return &LimitError{maxValues, "values"}
	}
	return json.Unmarshal(text, into)
}

// hasMore reports whether text has more values than the given maximum. It counts brackets, commas and colons, and
// accepts invalid JSON.
func hasMore(text []byte, most int) bool {
	count := 1
	for _, sign := range []string{",", ":", "[", "{"} {
		count += bytes.Count(text, []byte(sign))
	}
	if count <= most { // usually sufficient, even though it counts inside strings
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
