package api

import (
	"io"
	"net/url"
	"strings"

	"cutroom/shared/domain/catalog"
)

const maxURLEncoded = 256 << 10

func readURLEncoded(b *body, form *catalog.Form) (submission, error) {
	text, err := io.ReadAll(io.LimitReader(b, maxURLEncoded+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxURLEncoded {
		return nil, problems{bodyProblem("The form is longer than 256 KiB.")}
	}
	sub := submission{}
	for pair := range strings.SplitSeq(string(text), "&") {
		// Do not use url.ParseQuery, which would reject a semicolon in a value.
		name, value, _ := strings.Cut(pair, "=")
		name, wrongName := url.QueryUnescape(name)
		value, wrongValue := url.QueryUnescape(value)
		if wrongName != nil || wrongValue != nil {
			return nil, problems{bodyProblem("The body is not valid application/x-www-form-urlencoded.")}
		}
		field, known := form.Field(name)
		value = shorten(value)
		if !known || field.Type.IsFile() || isAbsent(field, value) {
			continue
		}
		if s := sub.begin(field, name); s != nil {
			s.text = value
		}
	}
	return sub, nil
}
