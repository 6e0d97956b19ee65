package request

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// problem describes an error as callers see it, with its position and any duplicate name.
func problem(err error) string {
	var syntax *jsontext.SyntacticError
	switch {
	case !errors.As(err, &syntax):
		return fmt.Sprint(err)
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Sprint(syntax)
	}
	return fmt.Sprint("not JSON at ", syntax.ByteOffset)
}

// Walk returns the tokens of a body with their positions. It cuts out strings of the given minimum length, in bytes.
// If that length is -1, it cuts out none.
func Walk(body []byte, long int) string {
	r := new(jsonReader)
	r.read(nil)
	r.body = body
	reading := body
	if long >= 0 && r.skeleton.cutOut(body, long) {
		reading = r.skeleton.bytes
	}
	r.source = *bytes.NewBuffer(reading)
	r.decoder.Reset(&r.source)
	var said strings.Builder
	for {
		kind := r.kind()
		switch kind {
		case '{', '[':
			at, err := r.open()
			fmt.Fprintf(&said, "%c at %d %s\n", kind, at, problem(err))
			if err != nil {
				return said.String()
			}
		case '}', ']':
			at, err := r.close(0)
			fmt.Fprintf(&said, "%c at %d %s\n", kind, at.end, problem(err))
			if err != nil {
				return said.String()
			}
		case 0:
			fmt.Fprintf(&said, "end %s\n", problem(r.end()))
			return said.String()
		default:
			value, at, err := r.value()
			fmt.Fprintf(&said, "%q from %d to %d %s\n", value, at.start, at.end, problem(err))
			if err != nil {
				return said.String()
			}
		}
	}
}
