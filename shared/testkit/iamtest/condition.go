package iamtest

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// condition compares a key of the request's context with some values.
type condition struct {
	key    string
	values []string
	// each is "ForAllValues", "ForAnyValue" or "", for keys with one value.
	each string
	// ifExists makes the condition true where the request lacks the key.
	ifExists bool
	// null asks whether the request lacks the key.
	null bool
	// negated operators are true if no value matches.
	negated bool
	compare comparison
}

// comparison compares a value of the request with one of a policy.
type comparison struct {
	// matches is nil where the values are compared by meaning.
	pattern func(pattern []glyph, value string) bool
	meaning func(policy, value string) bool
}

// comparisons are the operators without Not, IfExists and those for sets.
var comparisons = map[string]comparison{
	"StringEquals":             {pattern: equal},
	"StringEqualsIgnoreCase":   {pattern: func(p []glyph, v string) bool { return strings.EqualFold(textOf(p), v) }},
	"StringLike":               {pattern: matches},
	"ArnEquals":                {pattern: matchesARN},
	"ArnLike":                  {pattern: matchesARN},
	"Bool":                     {meaning: strings.EqualFold},
	"NumericEquals":            {meaning: number(func(c int) bool { return c == 0 })},
	"NumericLessThan":          {meaning: number(func(c int) bool { return c < 0 })},
	"NumericLessThanEquals":    {meaning: number(func(c int) bool { return c <= 0 })},
	"NumericGreaterThan":       {meaning: number(func(c int) bool { return c > 0 })},
	"NumericGreaterThanEquals": {meaning: number(func(c int) bool { return c >= 0 })},
	"DateEquals":               {meaning: date(func(c int) bool { return c == 0 })},
	"DateLessThan":             {meaning: date(func(c int) bool { return c < 0 })},
	"DateLessThanEquals":       {meaning: date(func(c int) bool { return c <= 0 })},
	"DateGreaterThan":          {meaning: date(func(c int) bool { return c > 0 })},
	"DateGreaterThanEquals":    {meaning: date(func(c int) bool { return c >= 0 })},
	"IpAddress":                {meaning: inBlock},
}

// negations are the operators that are true where the other is not.
var negations = map[string]string{
	"StringNotEquals": "StringEquals", "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
	"StringNotLike": "StringLike", "ArnNotEquals": "ArnEquals", "ArnNotLike": "ArnLike",
	"NumericNotEquals": "NumericEquals", "DateNotEquals": "DateEquals", "NotIpAddress": "IpAddress",
}

func newCondition(operator, key string, values []string) (condition, error) {
	c := condition{key: key, values: values}
	name := operator
	if each, rest, ok := strings.Cut(name, ":"); ok {
		if each != "ForAllValues" && each != "ForAnyValue" {
			return c, fmt.Errorf("the condition operator %s is not evaluated", operator)
		}
		c.each, name = each, rest
	}
	name, c.ifExists = strings.CutSuffix(name, "IfExists")
	if c.null = name == "Null" && !c.ifExists; c.null {
		return c, nil
	}
	if of, ok := negations[name]; ok {
		name, c.negated = of, true
	}
	compare, known := comparisons[name]
	if !known {
		return c, fmt.Errorf("the condition operator %s is not evaluated", operator)
	}
	c.compare = compare
	return c, nil
}

// holds reports whether the condition is true of a request.
//
// Errors: the key has several values, and the operator is for one.
func (c condition) holds(has func(string) []string, variables bool) (bool, error) {
	present := has(c.key)
	if c.null {
		return len(c.values) == 1 && strings.EqualFold(c.values[0], strconv.FormatBool(len(present) == 0)), nil
	}
	switch {
	case len(present) == 0 && c.each == "ForAnyValue":
		return c.ifExists, nil
	case len(present) == 0:
		return c.ifExists || c.negated || c.each == "ForAllValues", nil
	case len(present) > 1 && c.each == "":
		return false, fmt.Errorf("%s has %d values, and the operator is for one", c.key, len(present))
	}
	all, some := true, false
	for _, value := range present {
		holds := c.holdsOf(value, has, variables)
		all, some = all && holds, some || holds
	}
	if c.each == "ForAnyValue" {
		return some, nil
	}
	return all, nil
}

// holdsOf reports whether the condition is true of one value of the request.
func (c condition) holdsOf(value string, has func(string) []string, variables bool) bool {
	for _, wanted := range c.values {
		matched := false
		if c.compare.meaning != nil {
			matched = c.compare.meaning(wanted, value)
		} else if glyphs, ok := pattern(wanted, variables, has); ok {
			matched = c.compare.pattern(glyphs, value)
		}
		if matched {
			return !c.negated
		}
	}
	return c.negated
}

func equal(p []glyph, value string) bool { return textOf(p) == value }

// textOf returns a pattern as it is written, its variables replaced.
func textOf(pattern []glyph) string {
	var text strings.Builder
	for _, g := range pattern {
		text.WriteRune(g.char)
	}
	return text.String()
}

// number compares a value with the policy's, as numbers.
func number(wanted func(compared int) bool) func(policy, value string) bool {
	return func(policy, value string) bool {
		p, err := strconv.ParseFloat(policy, 64)
		v, other := strconv.ParseFloat(value, 64)
		if err != nil || other != nil {
			return false
		}
		switch {
		case v < p:
			return wanted(-1)
		case v > p:
			return wanted(1)
		}
		return wanted(0)
	}
}

// date compares a value with the policy's, as times.
func date(wanted func(compared int) bool) func(policy, value string) bool {
	return func(policy, value string) bool {
		p, ok := timeOf(policy)
		v, other := timeOf(value)
		return ok && other && wanted(v.Compare(p))
	}
}

// timeOf reads a time of ISO 8601, or in seconds since 1970.
func timeOf(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly, "2006-01", "2006"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// inBlock reports whether an address is in a block of them; one without a length is a
// single address.
func inBlock(block, value string) bool {
	address, err := netip.ParseAddr(value)
	if err != nil {
		return false
	}
	prefix, err := netip.ParsePrefix(block)
	if err != nil {
		one, err := netip.ParseAddr(block)
		return err == nil && one == address
	}
	return prefix.Contains(address)
}
