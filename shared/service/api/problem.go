package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
)

// problem is an item in docs/contract/errors.md#validation-errors. The types and messages match pydantic 2, so that
// tools written for it understand them.
type problem struct {
	// Location is the path to the value: "body" and the field's name.
	Location []string `json:"loc"`
	Message  string   `json:"msg"`
	Type     string   `json:"type"`
	// Input is the value that was sent. It is nil for files and missing fields.
	Input   any            `json:"input"`
	Context map[string]any `json:"ctx"`
}

type problems []problem

// maxProblems and maxInputs limit a response's problems and the total bytes of their inputs and locations.
const maxProblems, maxInputs = 100, 16 << 10

// shorten drops problems and cuts inputs beyond the limits, so that unread responses do not use much memory.
func (p problems) shorten() problems {
	p = slices.Clone(p[:min(len(p), maxProblems)])
	left := maxInputs
	for i := range p {
		text := ""
		switch input := p[i].Input.(type) {
		case string:
			text = input
		case json.RawMessage:
			text = string(input)
		}
		if left -= len(text); left < 0 && text != "" {
			p[i].Input = fmt.Sprintf("%.100s…", text)
		}
		p[i].Location = slices.Clone(p[i].Location)
		for k, name := range p[i].Location {
			if left -= len(name); left < 0 {
				p[i].Location[k] = fmt.Sprintf("%.100s", name)
			}
		}
	}
	return p
}

// Error lists fields and types, but not values.
func (p problems) Error() string {
	var text strings.Builder
	text.WriteString("invalid request:")
	for _, one := range p {
		fmt.Fprintf(&text, " %s %s;", strings.Join(one.Location, "."), one.Type)
	}
	return strings.TrimSuffix(text.String(), ";")
}

func fieldProblem(field, kind string, input any, message string, context map[string]any) problem {
	if context == nil {
		context = map[string]any{}
	}
	return problem{[]string{"body", field}, message, kind, input, context}
}

func (p problem) within(names ...string) problem {
	p.Location = slices.Concat(p.Location[:1], names, p.Location[1:])
	return p
}

func missing(field string) problem { return fieldProblem(field, "missing", nil, "Field required", nil) }

// valueProblem is for problems that have no type in pydantic.
func valueProblem(field string, input any, message string) problem {
	return fieldProblem(field, "value_error", input, "Value error, "+message, nil)
}

func bodyProblem(message string) problem {
	return problem{[]string{"body"}, "Value error, " + message, "value_error", nil, map[string]any{}}
}

func integerUnparsable(field, text string) problem {
	return fieldProblem(field, "int_parsing", text,
		"Input should be a valid integer, unable to parse string as an integer", nil)
}

func booleanUnparsable(field, text string) problem {
	return fieldProblem(field, "bool_parsing", text, "Input should be a valid boolean, unable to interpret input", nil)
}

func belowMin(field string, input any, least int64) problem {
	return fieldProblem(field, "greater_than_equal", input,
		fmt.Sprintf("Input should be greater than or equal to %d", least), map[string]any{"ge": least})
}

func aboveMax(field string, input any, most int64) problem {
	return fieldProblem(field, "less_than_equal", input,
		fmt.Sprintf("Input should be less than or equal to %d", most), map[string]any{"le": most})
}

func tooLong(field, text string, most int64) problem {
	return fieldProblem(field, "string_too_long", text,
		fmt.Sprintf("String should have at most %d %s", most, characters(most)), map[string]any{"max_length": most})
}

func characters(n int64) string {
	if n == 1 {
		return "character"
	}
	return "characters"
}

func tooShort(field, text string, least int64) problem {
	return fieldProblem(field, "string_too_short", text,
		fmt.Sprintf("String should have at least %d %s", least, characters(least)), map[string]any{"min_length": least})
}

func patternMismatch(field, text, pattern string) problem {
	return fieldProblem(field, "string_pattern_mismatch", text,
		fmt.Sprintf("String should match pattern '%s'", pattern), map[string]any{"pattern": pattern})
}

func notAmong(field, text string, values []string) problem {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = "'" + value + "'"
	}
	expected := sequence(quoted, "or")
	return fieldProblem(field, "literal_error", text, "Input should be "+expected, map[string]any{"expected": expected})
}

// sequence joins words as in "a", "a or b", "a, b or c".
func sequence(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

func unsupportedKind(name string, field *catalog.Field) problem {
	article := "a"
	if field.Type == catalog.ImageFile {
		article = "an"
	}
	kinds := media.Names(func(kind media.Type) bool { return accepts(field, kind) })
	return valueProblem(name, nil, fmt.Sprintf("The file must be %s %s: %s.",
		article, field.Type, sequence(kinds, "or")))
}

func fileTooLarge(field string, most int64) problem {
	size := fmt.Sprintf("%d bytes", most)
	if most%(1<<20) == 0 {
		size = fmt.Sprintf("%d MiB", most>>20)
	}
	return valueProblem(field, nil, "The file is larger than "+size+".")
}
