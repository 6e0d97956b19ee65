package httpserver

import "strings"

// maxParameters is how many parameters a media type or a disposition may have.
const maxParameters = 100

// HasManyParameters reports whether the value of a field such as Content-Type or
// Content-Disposition has more than 100 parameters. Package mime takes 40 times the
// length of such a value, so ask before it parses one from outside.
func HasManyParameters(value string) bool { return strings.Count(value, ";") > maxParameters }
