package api

import (
	"net/url"
	"strings"
)

// maxNames is how many names of a query are kept.
const maxNames = 100

// readQuery parses a query. If a name occurs twice the last value counts, and an
// invalid escape stands for itself. Unlike url.ParseQuery, it drops nothing
// silently, but of more than 100 names it keeps the first 100: a query may have
// thousands, also of callers without a credential.
func readQuery(raw string) map[string]string {
	values := map[string]string{}
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name = unescaped(name)
		if _, known := values[name]; known || len(values) < maxNames {
			values[name] = unescaped(value)
		}
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
