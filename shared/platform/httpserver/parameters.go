package httpserver

import "strings"

const maxParameters = 100

// HasManyParameters reports whether a value such as a Content-Type has more than 100 parameters.
// Package mime uses 40 times the length of such a value, so check values from outside first.
func HasManyParameters(value string) bool { return strings.Count(value, ";") > maxParameters }
