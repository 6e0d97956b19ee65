package request

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Walk returns the tokens of a body with their ends. Objects and arrays that are inside the given number of others count
// as one token. It returns "" if the body is not an object in I-JSON. If known is false, the reader does not use the
// numbers that the parser has recorded.
func Walk(body []byte, depth int, known bool) string {
	r := new(jsonReader)
	if !r.Parse(body) {
		return ""
	}
	if !known {
		r.Read(body)
	}
	var said strings.Builder
	var around []jsontext.Kind
	named := false
	for kind := r.Kind(); kind != 0; kind = r.Kind() {
		end, isMember := 0, len(around) > 0 && around[len(around)-1] == '{'
		switch {
		case kind == '}' || kind == ']':
			end, around, named = r.Close(), around[:len(around)-1], false
		case isMember && !named:
			_, end = r.Key()
			named = true
		case (kind == '{' || kind == '[') && len(around) <= depth:
			end, around, named = r.Open()+1, append(around, kind), false
		default:
			_, end = r.Value()
			named = false
		}
		fmt.Fprintf(&said, "%c to %d\n", kind, end)
	}
	return said.String()
}
