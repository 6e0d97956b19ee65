package iamtest

import (
	"slices"
	"strings"
)

// glyph is a character of a pattern, or a wildcard.
type glyph struct {
	char rune
	// any matches a single character. many matches any number of characters.
	any, many bool
	// within means that the wildcard does not match a colon.
	within bool
}

// pattern parses a string of a policy. Variables such as ${aws:username} are replaced by the
// request's values, in which wildcards have no meaning. ok is false if the request lacks a value.
func pattern(text string, variables bool, has func(key string) []string) (glyphs []glyph, ok bool) {
	for text != "" {
		inner, rest, closed := strings.Cut(strings.TrimPrefix(text, "${"), "}")
		if variables && closed && strings.HasPrefix(text, "${") {
			value, ok := variable(inner, has)
			if !ok {
				return nil, false
			}
			glyphs, text = append(glyphs, literal(value)...), rest
			continue
		}
		char := []rune(text)[0]
		glyphs = append(glyphs, glyph{char: char, any: char == '?', many: char == '*'})
		text = text[len(string(char)):]
	}
	return glyphs, true
}

func variable(inner string, has func(string) []string) (value string, ok bool) {
	if inner == "*" || inner == "?" || inner == "$" {
		return inner, true
	}
	key, otherwise, defaulted := strings.Cut(inner, ",")
	if values := has(strings.TrimSpace(key)); len(values) == 1 {
		return values[0], true
	}
	return strings.Trim(strings.TrimSpace(otherwise), "'"), defaulted
}

func literal(text string) []glyph {
	var glyphs []glyph
	for _, char := range text {
		glyphs = append(glyphs, glyph{char: char})
	}
	return glyphs
}

// matches reports whether a string matches the pattern. Case matters.
func matches(pattern []glyph, text string) bool {
	in := []rune(text)
	// reached marks the prefixes of the string that match the pattern so far.
	reached := make([]bool, len(in)+1)
	reached[0] = true
	for _, g := range pattern {
		next := make([]bool, len(in)+1)
		if g.many {
			for i, alive := 0, false; i <= len(in); i++ {
				alive = reached[i] || alive && !(g.within && in[i-1] == ':')
				next[i] = alive
			}
		} else {
			for i, char := range in {
				next[i+1] = reached[i] && (g.any && !(g.within && char == ':') || !g.any && g.char == char)
			}
		}
		reached = next
	}
	return reached[len(in)]
}

// segments is the number of colon-separated parts of an ARN. The last part may itself contain colons.
const segments = 6

// matchesResource reports whether an ARN matches a pattern. A wildcard does not match colons, except in the last part
// of the ARN or if it is an asterisk at the end of its part.
func matchesResource(pattern []glyph, arn string) bool {
	pattern = slices.Clone(pattern)
	part := 1
	for i := range pattern {
		if !pattern[i].any && !pattern[i].many && pattern[i].char == ':' {
			part++
			continue
		}
		ends := i+1 == len(pattern) || pattern[i+1].char == ':'
		pattern[i].within = part < segments && !(pattern[i].many && ends)
	}
	return matches(pattern, arn)
}

// matchesARN compares the parts of an ARN separately, as conditions do.
func matchesARN(pattern []glyph, arn string) bool {
	parts := strings.SplitN(arn, ":", segments)
	if len(parts) != segments {
		return false
	}
	for i, part := range parts {
		end := len(pattern)
		if i < segments-1 {
			end = slices.IndexFunc(pattern, func(g glyph) bool { return !g.any && !g.many && g.char == ':' })
			if end < 0 {
				return false
			}
		}
		if !matches(pattern[:end], part) {
			return false
		}
		pattern = pattern[min(end+1, len(pattern)):]
	}
	return true
}

// matchesAction reports whether an action matches a pattern. Case does not matter.
func matchesAction(text, action string) bool {
	glyphs, _ := pattern(strings.ToLower(text), false, nil)
	return matches(glyphs, strings.ToLower(action))
}
