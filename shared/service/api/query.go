package api

import (
	"net/url"
	"strings"
)

const maxNames = 100

// readQuery keeps the last value of a repeated name, and leaves invalid escapes undecoded. It drops
// all names after the first 100, because even clients without a credential can send thousands.
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

// in moves a problem's location from the body to the query, the path or a header.
func (p problem) in(place string) problem {
	p.Location = append([]string{place}, p.Location[1:]...)
	return p
}
