package api

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

// maxValue is how much of a value is kept, in bytes: more than any field's
// limit lets through. What is longer is judged, and shown, by its beginning.
const maxValue = 64 << 10

// Fields of the domain's own in the forms of the catalog. Every other field is
// an option of the model.
const (
	promptField = "prompt"
	seedField   = "seed"
	// webhookField is in no form of the catalog, but in that of every job.
	webhookField = "webhook_url"
)

// sent is what a request carries for a field.
type sent struct {
	// name is the field's name as the client spelled it: a field may have two.
	name string
	// text is the value of a field that is no file.
	text string
	// input is the file of a file field, nil when it has a problem.
	input *job.Input
	// problems are those found while the form was read.
	problems problems
}

// submission is what a request's form carries, by the field's first name.
type submission map[string]*sent

// begin makes the entry of a field that a form carries under the name. It gives
// nil, and notes the problem once, when the field is there already.
func (sub submission) begin(field *catalog.Field, name string) *sent {
	before := sub[field.Name]
	if before == nil {
		sub[field.Name] = &sent{name: name}
		return sub[field.Name]
	}
	twice := valueProblem(name, nil, "The field was sent more than once.")
	if before.name != name {
		twice = valueProblem(name, nil, fmt.Sprintf("%s and %s are one field: send one of them.", field.Name, field.Also))
	}
	known := func(p problem) bool { return p.Message == twice.Message }
	if !slices.ContainsFunc(before.problems, known) {
		before.problems = append(before.problems, twice)
	}
	return nil
}

// carries reports whether the request has the field, by either of its names.
func (sub submission) carries(form *catalog.Form, name string) bool {
	field, ok := form.Field(name)
	return ok && sub[field.Name] != nil
}

// isAbsent reports whether a value that is no file counts as one that was not sent:
// an empty one, and a prompt of white space alone. One that was cut is not.
func isAbsent(field *catalog.Field, text string) bool {
	if field.Name != promptField || len(text) > maxValue-utf8.UTFMax {
		return text == ""
	}
	return strings.TrimSpace(text) == ""
}

// order is a valid form: what a job is to do.
type order struct {
	request job.Request
	// seed is nil when the form has none.
	seed *uint32
	// webhook is the URL that is told of the job's end, or empty.
	webhook string
}

// asked is what the form asks for, whatever names it has and in whatever parts it
// came: files by their content, and no seed where none was sent.
func (o order) asked() any {
	files := map[string]string{}
	for name, input := range o.request.Inputs {
		files[name] = fmt.Sprint(input.MD5, " ", input.Size)
	}
	return []any{o.request.Prompt, o.request.Options, files, o.seed, o.webhook}
}

// interpret reads what was sent by the rules of the form
// (docs/contract/media.md#forms). All problems are given at once, in the order of
// the fields; those of the form as a whole come last.
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
				found = append(found, valueProblem(s.name, s.shown(field), fmt.Sprintf("%s can be sent only with %s.", field.Name, with)))
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

// shown is the value as a problem shows it.
func (s *sent) shown(field *catalog.Field) any {
	if field.Type.IsFile() {
		return nil
	}
	return s.text
}

// take reads one field.
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

// set puts a value where the domain keeps it.
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

// integerForm is text that pydantic reads as an integer, once it is trimmed.
var integerForm = regexp.MustCompile(`^([+-]?[0-9]+(?:_[0-9]+)*)(?:\.0+)?$`)

// parse reads a value that is no file: a string, an int64 or a bool.
//
// Integers are read as pydantic reads text: white space around them, a sign,
// single underscores between digits and a fraction of zeros are no error.
// Booleans are those of docs/contract/media.md#forms, in any case, and nothing
// around them.
func parse(field *catalog.Field, s *sent) (any, *problem) {
	if !utf8.ValidString(s.text) {
		wrong := valueProblem(s.name, nil, "The value is not valid UTF-8.")
		return nil, &wrong
	}
	var wrong problem
	switch field.Type {
	case catalog.Integer:
		match := integerForm.FindStringSubmatch(strings.TrimSpace(s.text))
		if match == nil {
			wrong = integerUnparsable(s.name, s.text)
			break
		}
		// A number that is out of range gives the nearest that is not, which
		// is enough to tell on which side of the limits it is.
		number, _ := strconv.ParseInt(strings.ReplaceAll(match[1], "_", ""), 10, 64)
		switch {
		case field.Min != nil && number < *field.Min:
			wrong = tooSmall(s.name, s.text, *field.Min)
		case field.Max != nil && number > *field.Max:
			wrong = tooGreat(s.name, s.text, *field.Max)
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
