package httpserver

import "strings"

const maxParameters = 100

// HasManyParameters reports whether the value of a field such as Content-Type or
// Content-Disposition has more than 100 parameters. Package mime uses 40 times the length of such a
// value, so check values from outside first.
func HasManyParameters(value string) bool { return strings.Count(value, ";") > maxParameters }
