package api

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

// maxValue limits how much of a value is kept, in bytes. It exceeds the limit of every field. maxValues limits the names
// and values of a form, in bytes.
const maxValue, maxValues = 64 << 10, 256 << 10

// All other form fields are options of the model.
const (
	promptField = catalog.PromptField
	seedField   = "seed"
	// webhookField is not in the catalog's forms; jobForm adds it.
	webhookField = catalog.WebhookField
)

type sent struct {
	// name is the name that the client used. A field may have two names.
	name string
	text string
	// input is nil if there is a problem with the file.
	input    *job.Input
	problems problems
}

// submission maps each field's primary name to its content.
type submission map[string]*sent

// begin adds an entry for a field that was sent. It returns nil if the field was sent before, so that a repeated
// field causes only one problem.
func (sub submission) begin(field *catalog.Field, name string) *sent {
	before := sub[field.Name]
	if before == nil {
		sub[field.Name] = &sent{name: name}
		return sub[field.Name]
	}
	twice := valueProblem(name, nil, "The field was sent more than once.")
	if before.name != name {
		twice = valueProblem(name, nil, fmt.Sprintf("%s and %s are the same field. Send only one of them.", field.Name, field.Also))
	}
	known := func(p problem) bool { return p.Message == twice.Message }
	if !slices.ContainsFunc(before.problems, known) {
		before.problems = append(before.problems, twice)
	}
	return nil
}

func (sub submission) carries(form *catalog.Form, name string) bool {
	field, ok := form.Field(name)
	return ok && sub[field.Name] != nil
}

// isAbsent reports whether a field counts as not sent. Text is absent if it is empty. A prompt is
// also absent if it is only white space.
func isAbsent(field *catalog.Field, text string) bool {
	if field.Name != promptField || len(text) > maxValue-utf8.UTFMax {
		return text == ""
	}
	return strings.TrimSpace(text) == ""
}

type order struct {
	request job.Request
	seed    *uint32
	// webhook is the URL to notify when the job ends, or "".
	webhook string
}

// asked returns a value that identifies the form's content, regardless of its spelling and encoding.
func (o order) asked() any {
	files := map[string]string{}
	for name, input := range o.request.Inputs {
		files[name] = fmt.Sprint(cmp.Or(input.MD5, input.Reference), " ", input.Size)
	}
	return []any{o.request.Prompt, o.request.Options, files, o.seed, o.webhook}
}

// interpret validates the submission (docs/contract/media.md#forms). It returns all problems in
// field order, followed by problems with the form as a whole.
func interpret(form *catalog.Form, sub submission) (order, problems) {
	o := order{request: job.Request{Options: map[string]any{}, Inputs: map[string]job.Input{}}}
	var found problems
	for i := range form.Fields {
		field := &form.Fields[i]
		s, carried := sub[field.Name]
		with, conditional := form.OnlyWith[field.Name]
		permitted := !conditional || sub.carries(form, with)
		switch {
		case carried:
			found = append(found, o.take(field, s)...)
			if !permitted {
				found = append(found, valueProblem(s.name, s.shown(field),
					fmt.Sprintf("%s can be sent only with %s.", field.Name, with)))
			}
		case field.Required:
			found = append(found, missing(field.Name))
		case field.Default != nil && permitted:
			o.set(field, field.Default)
		}
	}
	if len(form.ExactlyOne) > 0 {
		count := 0
		for _, name := range form.ExactlyOne {
			if sub.carries(form, name) {
				count++
			}
		}
		if count != 1 {
			found = append(found, bodyProblem("Send exactly one of "+sequence(form.ExactlyOne, "and")+"."))
		}
	}
	return o, found
}

func (s *sent) shown(field *catalog.Field) any {
	if field.Type.IsFile() {
		return nil
	}
	return s.text
}

func (o *order) take(field *catalog.Field, s *sent) problems {
	found := s.problems
	if field.Type.IsFile() {
		if s.input != nil {
			o.request.Inputs[field.Name] = *s.input
		}
		return found
	}
	value, wrong := parse(field, s)
	if wrong != nil {
		return append(found, *wrong)
	}
	o.set(field, value)
	return found
}

func (o *order) set(field *catalog.Field, value any) {
	switch text, isText := value.(string); {
	case field.Name == promptField && isText:
		o.request.Prompt = text
	case field.Name == webhookField && isText:
		o.webhook = text
	case field.Name == seedField && field.Type == catalog.Integer:
		seed := uint32(value.(int64))
		o.seed = &seed
	default:
		o.request.Options[field.Name] = value
	}
}

// integerForm matches trimmed strings that pydantic accepts as integers. It is compiled on first
// use, because few functions need it.
var integerForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([+-]?[0-9]+(?:_[0-9]+)*)(?:\.0+)?$`)
})

// parse returns a string, an int64 or a bool.
//
// It accepts the same integers as pydantic: with surrounding white space, a sign, single underscores between
// digits, and a fraction of zeros. For booleans, see docs/contract/media.md#forms.
func parse(field *catalog.Field, s *sent) (any, *problem) {
	if !utf8.ValidString(s.text) {
		wrong := valueProblem(s.name, nil, "The value is not valid UTF-8.")
		return nil, &wrong
	}
	var wrong problem
	switch field.Type {
	case catalog.Integer:
		match := integerForm().FindStringSubmatch(strings.TrimSpace(s.text))
		if match == nil {
			wrong = integerUnparsable(s.name, s.text)
			break
		}
		// If the number is out of range, ParseInt returns the nearest int64, which exceeds the field's limits too.
		number, _ := strconv.ParseInt(strings.ReplaceAll(match[1], "_", ""), 10, 64)
		switch {
		case field.Min != nil && number < *field.Min:
			wrong = belowMin(s.name, s.text, *field.Min)
		case field.Max != nil && number > *field.Max:
			wrong = aboveMax(s.name, s.text, *field.Max)
		default:
			return number, nil
		}
	case catalog.Boolean:
		switch strings.ToLower(s.text) {
		case "true", "1", "on", "yes", "t", "y":
			return true, nil
		case "false", "0", "off", "no", "f", "n":
			return false, nil
		}
		wrong = booleanUnparsable(s.name, s.text)
	case catalog.Choice:
		if slices.Contains(field.Values, s.text) {
			return s.text, nil
		}
		wrong = notAmong(s.name, s.text, field.Values)
	default:
		if field.Max == nil || int64(utf8.RuneCountInString(s.text)) <= *field.Max {
			return s.text, nil
		}
		wrong = tooLong(s.name, s.text, *field.Max)
	}
	return nil, &wrong
}
