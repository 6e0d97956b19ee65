package api

import (
	"net/url"
	"strings"
)

// readQuery reads a query by name. Of a name that comes twice the last value
// counts, and an escape that is none stands for itself: nothing of a query is
// dropped in silence, as url.ParseQuery would.
func readQuery(raw string) map[string]string {
	values := map[string]string{}
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		values[unescaped(name)] = unescaped(value)
	}
	return values
}

func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// in gives a problem of the body as one of another part of the request: query,
// path or header.
func (p problem) in(place string) problem {
	p.Location = append([]string{place}, p.Location[1:]...)
	return p
}
