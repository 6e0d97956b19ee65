package httpserver

import "strings"

const maxParameters = 100

// HasManyParameters reports whether a value such as a Content-Type has more than 100 parameters. Package mime
// uses 40 times the value's length in memory, so call this first for values from outside.
func HasManyParameters(value string) bool { return strings.Count(value, ";") > maxParameters }
