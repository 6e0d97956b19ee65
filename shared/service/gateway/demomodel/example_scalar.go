package demomodel

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formats are examples for the named formats of JSON Schema.
var formats = map[string]string{
	"date-time": "2026-01-01T12:00:00Z", "date": "2026-01-01", "time": "12:00:00Z", "duration": "P1D",
	"email": "someone@example.com", "idn-email": "someone@example.com",
	"hostname": "example.com", "idn-hostname": "example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uuid": "123e4567-e89b-42d3-a456-426614174000",
	"uri": "https://example.com/", "uri-reference": "/example", "iri": "https://example.com/", "iri-reference": "/example",
	"uri-template": "/example/{id}", "json-pointer": "/example", "relative-json-pointer": "0", "regex": "example",
}

// string writes a string that the keywords allow.
func (s schema) string(out *bytes.Buffer, number int) error {
	least, most := 0, math.MaxInt32
	var pattern, format string
	if err := errors.Join(
		s.read("minLength", &least), s.read("maxLength", &most),
		s.read("pattern", &pattern), s.read("format", &format),
	); err != nil {
		return err
	}
	if least > maxValues {
		return errors.New("minLength is too great")
	}
	if pattern != "" {
		text, err := matching(pattern, least, most)
		if err != nil {
			return err
		}
		return writeString(out, text)
	}
	text, ok := formats[format]
	if !ok {
		text = "example"
		if number > 0 {
			text = fmt.Sprint("example ", number+1)
		}
		if len(text) > most {
			// The end distinguishes the items.
			text = text[len(text)-max(most, 0):]
		}
		text += strings.Repeat("x", max(0, least-len(text)))
	}
	if length := utf8.RuneCountInString(text); length < least || length > most {
		return errors.New("its length and format do not go together")
	}
	return writeString(out, text)
}

// matchSteps bounds the work for one pattern.
const matchSteps = 100_000

// matching returns a text that the pattern matches, with a length within the
// bounds.
func matching(pattern string, least, most int) (string, error) {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return "", errors.New("the pattern is not supported")
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", errors.New("the pattern is not supported")
	}
	parsed = parsed.Simplify()
	fits := func(text string) bool {
		length := utf8.RuneCountInString(text)
		return length >= least && length <= most && wanted.MatchString(text)
	}
	m := matcher{}
	// More repetitions make a longer text, until it fits.
	for m.repeats = 0; m.repeats <= least+1 && m.steps < matchSteps; m.repeats++ {
		m.text.Reset()
		m.write(parsed)
		text := m.text.String()
		if fits(text) {
			return text, nil
		}
		// A pattern without an anchor at the end allows anything behind it.
		if text += strings.Repeat("x", max(0, least-utf8.RuneCountInString(text))); fits(text) {
			return text, nil
		}
	}
	return "", errors.New("no text was found for the pattern")
}

// matcher writes texts that an expression matches.
type matcher struct {
	text strings.Builder
	// repeats is how often a repeatable part is written.
	repeats, steps int
}

func (m *matcher) write(e *syntax.Regexp) {
	if m.steps++; m.steps > matchSteps {
		return
	}
	switch e.Op {
	case syntax.OpLiteral:
		m.text.WriteString(string(e.Rune))
	case syntax.OpCharClass:
		m.text.WriteRune(member(e.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		m.text.WriteByte('x')
	case syntax.OpCapture, syntax.OpConcat:
		for _, part := range e.Sub {
			m.write(part)
		}
	case syntax.OpAlternate:
		m.write(e.Sub[0])
	case syntax.OpStar:
		m.repeat(e.Sub[0], m.repeats)
	case syntax.OpPlus:
		m.repeat(e.Sub[0], max(m.repeats, 1))
	case syntax.OpQuest:
		m.repeat(e.Sub[0], min(m.repeats, 1))
	}
}

func (m *matcher) repeat(e *syntax.Regexp, times int) {
	for range times {
		if m.steps > matchSteps {
			return
		}
		m.write(e)
	}
}

// member returns a character of a class, which is a list of ranges: a letter or
// a digit if it has one.
func member(class []rune) rune {
	for _, wanted := range "aA0" {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= wanted && wanted <= class[i+1] {
				return wanted
			}
		}
	}
	if len(class) == 0 {
		return utf8.RuneError
	}
	return class[0]
}

// number writes a number that the keywords allow.
func (s schema) number(out *bytes.Buffer, integer bool, nth int) error {
	low, high, step := math.Inf(-1), math.Inf(1), 0.0
	above, below := math.Inf(-1), math.Inf(1)
	if err := errors.Join(s.read("minimum", &low), s.read("maximum", &high), s.read("multipleOf", &step),
		s.read("exclusiveMinimum", &above), s.read("exclusiveMaximum", &below)); err != nil {
		return err
	}
	if integer {
		step = max(step, 1)
		if step != math.Trunc(step) {
			return errors.New("multipleOf is no integer")
		}
	}
	fits := func(n float64) bool { return n >= low && n <= high && n > above && n < below }
	if step > 0 {
		first := math.Ceil(max(low, above, min(1, high, below)) / step)
		for _, k := range []float64{first, first + 1, first - 1} {
			if n := k * step; fits(n) {
				if next := n + float64(nth)*step; fits(next) {
					n = next
				}
				return writeNumber(out, n)
			}
		}
		for k := math.Floor(min(high, below) / step); ; k-- {
			if n := k * step; fits(n) {
				return writeNumber(out, n)
			} else if n < max(low, above) || math.IsInf(n, 0) || math.IsNaN(n) {
				return errors.New("no number fits its bounds")
			}
		}
	}
	middle := (max(low, above, -1e6) + min(high, below, 1e6)) / 2
	th := float64(nth)
	for _, n := range []float64{1.5 + th, th + 1, low + th, high - th, middle, low, high, above + 1, below - 1} {
		if fits(n) && !math.IsInf(n, 0) && !math.IsNaN(n) {
			return writeNumber(out, n)
		}
	}
	return errors.New("no number fits its bounds")
}

func writeNumber(out *bytes.Buffer, n float64) error {
	_, err := out.WriteString(strconv.FormatFloat(n, 'f', -1, 64))
	return err
}
