package xray

import (
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/attribute"
)

// Annotation returns the X-Ray annotation key for an attribute, in letters, digits and underscores.
// It returns "" for OpenTelemetry attributes that X-Ray knows.
func Annotation(key attribute.Key) string {
	switch key {
	case "http.request.method", "http.response.status_code", "http.route", "rpc.system", "rpc.service", "rpc.method":
		return ""
	}
	return strings.Map(func(c rune) rune {
		if c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			return c
		}
		return '_'
	}, string(key))
}
