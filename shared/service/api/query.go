package api

import (
	"net/url"
	"strings"
)

const maxNames = 100

// readQuery keeps a repeated name's last value, and invalid escapes as text. It drops names after
// the first 100, because even a client without a credential may send thousands.
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

// in moves a problem from the body to the query, the path or a header.
func (p problem) in(place string) problem {
	p.Location = append([]string{place}, p.Location[1:]...)
	return p
}
