package iamtest

import (
	"fmt"
	"strconv"
	"strings"
)

// condition compares a condition key of the request with values.
type condition struct {
	key     string
	values  []string
	compare comparison
}

// comparison compares a request's value with a policy's value.
type comparison struct {
	// pattern is nil for operators that compare values by meaning rather than by spelling.
	pattern func(pattern []glyph, value string) bool
	meaning func(policy, value string) bool
}

// comparisons holds the operators that this project's policies use.
var comparisons = map[string]comparison{
	"StringEquals":    {pattern: equal},
	"ArnEquals":       {pattern: matchesARN},
	"ArnLike":         {pattern: matchesARN},
	"Bool":            {meaning: strings.EqualFold},
	"NumericLessThan": {meaning: less},
}

func newCondition(operator, key string, values []string) (condition, error) {
	compare, known := comparisons[operator]
	if !known {
		return condition{}, fmt.Errorf("the condition operator %s is not supported", operator)
	}
	return condition{key: key, values: values, compare: compare}, nil
}

// holds reports whether the condition is met for a request.
//
// Errors: the key has several values, which the operators do not support.
func (c condition) holds(has func(string) []string, variables bool) (bool, error) {
	present := has(c.key)
	if len(present) > 1 {
		return false, fmt.Errorf("%s has %d values, but the operator supports only one", c.key, len(present))
	}
	for _, value := range present {
		for _, wanted := range c.values {
			if c.compare.meaning != nil {
				if c.compare.meaning(wanted, value) {
					return true, nil
				}
			} else if glyphs, ok := pattern(wanted, variables, has); ok && c.compare.pattern(glyphs, value) {
				return true, nil
			}
		}
	}
	return false, nil
}

func equal(p []glyph, value string) bool { return textOf(p) == value }

func textOf(pattern []glyph) string {
	var text strings.Builder
	for _, g := range pattern {
		text.WriteRune(g.char)
	}
	return text.String()
}

func less(policy, value string) bool {
	p, err := strconv.ParseFloat(policy, 64)
	v, other := strconv.ParseFloat(value, 64)
	return err == nil && other == nil && v < p
}
