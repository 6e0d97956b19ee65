package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"cutroom/shared/domain/fault"
)

// maxJSON is how long a body of JSON may be, in bytes.
const maxJSON = 1 << 20

// jsonObject is an object of a request's body, its values unread. A member that
// is null counts as absent (see member), and unknown ones are ignored.
type jsonObject map[string]json.RawMessage

// readJSON reads a body that is an object of JSON, whatever type it declares;
// nil when there is no body, it is empty, or it is null.
//
// Errors: problems when it is none; those of the body; fault.TooLarge.
func readJSON(r *http.Request) (jsonObject, error) {
	tooLarge := fault.New(fault.TooLarge, "The request's body is larger than %d bytes.", maxJSON)
	if r.ContentLength > maxJSON {
		return nil, tooLarge
	}
	text, err := io.ReadAll(&body{source: r.Body, left: maxJSON, tooLarge: tooLarge})
	if err != nil {
		return nil, err
	}
	return parseJSON(text)
}

// parseJSON reads an object of JSON; nil when the text is blank or null.
//
// Errors: problems.
func parseJSON(text []byte) (jsonObject, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	if !utf8.Valid(text) {
		return nil, problems{invalidJSON("the text is not valid UTF-8", 0)}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, problems{invalidJSON(syntax.Error(), syntax.Offset)}
		}
		return nil, problems{invalidJSON("the text cannot be read", 0)}
	}
	if isNull(whole) {
		return nil, nil
	}
	object := jsonObject{}
	if json.Unmarshal(whole, &object) != nil {
		wrong := bodyProblem("The body must be a JSON object.")
		wrong.Input = whole
		return nil, problems{wrong}
	}
	return object, nil
}

// invalidJSON is the problem of a body that is no JSON. As in the tooling that
// knows these problems, the place in the text stands in the location.
func invalidJSON(reason string, offset int64) problem {
	return problem{[]string{"body", strconv.FormatInt(offset, 10)}, "Invalid JSON: " + reason, "json_invalid", nil, map[string]any{"error": reason}}
}

func isNull(value json.RawMessage) bool { return string(value) == "null" }

// member gives a value; nil when it is absent or null.
func (o jsonObject) member(name string) json.RawMessage {
	if value := o[name]; !isNull(value) {
		return value
	}
	return nil
}

// object gives a member that is an object, nil when it is absent.
func (o jsonObject) object(name string) (jsonObject, problems) {
	value := o.member(name)
	if value == nil {
		return nil, nil
	}
	inner := jsonObject{}
	if json.Unmarshal(value, &inner) != nil {
		return nil, problems{valueProblem(name, value, "Input should be an object.")}
	}
	return inner, nil
}

// text gives a member that is a string, and whether it is there.
func (o jsonObject) text(name string) (text string, there bool, found problems) {
	value := o.member(name)
	if value == nil {
		return "", false, nil
	}
	if json.Unmarshal(value, &text) != nil {
		return "", true, problems{notText(name, value)}
	}
	return text, true, nil
}

// boolean gives a member that is true or false; false when it is absent.
func (o jsonObject) boolean(name string) (is bool, found problems) {
	value := o.member(name)
	if value != nil && json.Unmarshal(value, &is) != nil {
		return false, problems{fieldProblem(name, "bool_parsing", value, "Input should be a valid boolean", nil)}
	}
	return is, nil
}

func notText(name string, value json.RawMessage) problem {
	return valueProblem(name, value, "Input should be a valid string.")
}

// texts gives a member that is a list of strings, at most so many, nil when it
// is absent. The items of a longer list are not judged: each could be a problem
// of its own in the answer.
func (o jsonObject) texts(name string, most int) (texts []string, found problems) {
	value := o.member(name)
	if value == nil {
		return nil, nil
	}
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		return nil, problems{valueProblem(name, value, "Input should be a list.")}
	}
	if len(items) > most {
		return nil, problems{valueProblem(name, value, fmt.Sprintf("The list has %d items, more than %d.", len(items), most))}
	}
	texts = make([]string, len(items))
	for i, item := range items {
		if isNull(item) || json.Unmarshal(item, &texts[i]) != nil {
			found = append(found, notText(strconv.Itoa(i), item).within(name))
		}
	}
	return texts, found
}

// integer gives a member that is a whole number, nil when it is absent. It may
// be written with a fraction of zeros or an exponent, as JSON has one kind of
// number. The bounds are below 2^53, where every whole number is exact.
func (o jsonObject) integer(name string, least, most int64) (*int64, problems) {
	value := o.member(name)
	if value == nil {
		return nil, nil
	}
	var shown any = value
	number, err := strconv.ParseFloat(string(value), 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		// The number is an infinity, on its right side of the bounds. It is
		// shown as text, as it would break a client that reads it.
		shown = string(value)
	case value[0] == '"':
		return nil, problems{fieldProblem(name, "int_parsing", value, "Input should be a valid integer, unable to parse string as an integer", nil)}
	case err != nil, number != math.Trunc(number):
		return nil, problems{fieldProblem(name, "int_parsing", value, "Input should be a valid integer", nil)}
	}
	switch {
	case number < float64(least):
		return nil, problems{tooSmall(name, shown, least)}
	case number > float64(most):
		return nil, problems{tooGreat(name, shown, most)}
	}
	n := int64(number)
	return &n, nil
}
