package api

import (
	"net/url"
	"strings"
)

// readQuery parses a query. If a name occurs twice the last value counts, and an
// invalid escape stands for itself. Unlike url.ParseQuery, it drops nothing
// silently.
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

// in returns a problem of the body as one of another part of the request: query,
// path or header.
func (p problem) in(place string) problem {
	p.Location = append([]string{place}, p.Location[1:]...)
	return p
}
