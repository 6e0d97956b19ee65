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
	"cutroom/shared/platform/boundedjson"
	"cutroom/shared/platform/httpserver"
)

// maxJSON limits JSON bodies, in bytes, and maxPublicJSON the bodies that need no credential. Thousands of connections may
// hold such a body at once.
const maxJSON, maxPublicJSON = 64 << 10, 16 << 10

// maxJSONValues limits the number of values and member names in a JSON body.
const maxJSONValues = 10_000

// jsonObject maps member names to undecoded values. A null member counts as absent, and unknown members are ignored.
type jsonObject map[string]json.RawMessage

// readJSON reads a JSON object, regardless of the content type. It returns nil if the body is absent, blank or
// null. Errors: problems for any other body; fault.TooLarge; fault.UnsupportedCoding.
func readJSON(r *http.Request) (jsonObject, error) { return readLongJSON(r, maxJSON, "") }

// readLongJSON is like readJSON, but with a different size limit. The error for a longer body includes the advice.
func readLongJSON(r *http.Request, most int64, advice string) (jsonObject, error) {
	tooLarge := fault.New(fault.TooLarge, "The request body is larger than %d bytes.%s", most, advice)
	if r.ContentLength > most {
		return nil, tooLarge
	}
	if most <= maxJSON { // longer bodies have arrived already: see spool
		release, err := httpserver.AwaitCompressed(r, &body{source: r.Body, left: most, tooLarge: tooLarge})
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if !httpserver.Decompress(r, most, nil) {
		return nil, fault.New(fault.UnsupportedCoding, "The Content-Encoding of the body is not supported. Use %s or none.",
			httpserver.AcceptedCodings)
	}
	text, err := io.ReadAll(&body{source: r.Body, left: most, tooLarge: tooLarge})
	if err != nil {
		return nil, err
	}
	return parseJSON(text)
}

// parseJSON returns nil if the text is blank or null.
func parseJSON(text []byte) (jsonObject, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	if !utf8.Valid(text) {
		return nil, problems{invalidJSON("the text is not valid UTF-8", 0)}
	}
	var whole json.RawMessage
	err := boundedjson.Unmarshal(text, maxJSONValues, &whole)
	var limit *boundedjson.LimitError
	if errors.As(err, &limit) {
		return nil, problems{bodyProblem(fmt.Sprintf("The body has more than %d values.", maxJSONValues))}
	}
	if err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, problems{invalidJSON(syntax.Error(), syntax.Offset)}
		}
		return nil, problems{invalidJSON("the text is malformed", 0)}
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

// As in pydantic, the location includes the byte offset of the error.
func invalidJSON(reason string, offset int64) problem {
	return problem{[]string{"body", strconv.FormatInt(offset, 10)}, "Invalid JSON: " + reason, "json_invalid", nil,
		map[string]any{"error": reason}}
}

func isNull(value json.RawMessage) bool { return string(value) == "null" }

// member returns nil if the member is absent or null.
func (o jsonObject) member(name string) json.RawMessage {
	if value := o[name]; !isNull(value) {
		return value
	}
	return nil
}

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

func (o jsonObject) boolean(name string) (is bool, found problems) {
	value := o.member(name)
	if value != nil && json.Unmarshal(value, &is) != nil {
		return false, problems{fieldProblem(name, "bool_parsing", value, "Input should be a valid boolean", nil)}
	}
	return is, nil
}

// number returns a number from 0 up to the given maximum, or 0 if the member is absent.
func (o jsonObject) number(name string, most int64) (float64, problems) {
	value := o.member(name)
	if value == nil {
		return 0, nil
	}
	number, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		var shown any = value
		if errors.Is(err, strconv.ErrRange) {
			shown = string(value) // clients could not parse it as a number
		}
		return 0, problems{fieldProblem(name, "float_parsing", shown, "Input should be a valid number", nil)}
	}
	switch {
	case number < 0:
		return 0, problems{belowMin(name, value, 0)}
	case number > float64(most):
		return 0, problems{aboveMax(name, value, most)}
	}
	return number, nil
}

func notText(name string, value json.RawMessage) problem {
	return valueProblem(name, value, "Input should be a valid string.")
}

// texts returns a list of strings, or nil if the member is absent. If the list is too long, texts does not validate
// its items, because each item could add a problem to the response.
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
		return nil, problems{valueProblem(name, value, fmt.Sprintf("The list has %d items; the maximum is %d.", len(items), most))}
	}
	texts = make([]string, len(items))
	for i, item := range items {
		if isNull(item) || json.Unmarshal(item, &texts[i]) != nil {
			found = append(found, notText(strconv.Itoa(i), item).within(name))
		}
	}
	return texts, found
}

// integer returns nil if the member is absent. It accepts exponents and a fraction of zeros, because JSON has
// only one number type. Limits must be below 2^53, because float64 is exact only up to there.
func (o jsonObject) integer(name string, least, most int64) (*int64, problems) {
	value := o.member(name)
	if value == nil {
		return nil, nil
	}
	var shown any = value
	number, err := strconv.ParseFloat(string(value), 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		// The number overflowed to infinity, which JSON cannot represent, so show the original text.
		shown = string(value)
	case value[0] == '"':
		return nil, problems{fieldProblem(name, "int_parsing", value,
			"Input should be a valid integer, unable to parse string as an integer", nil)}
	case err != nil, number != math.Trunc(number):
		return nil, problems{fieldProblem(name, "int_parsing", value, "Input should be a valid integer", nil)}
	}
	switch {
	case number < float64(least):
		return nil, problems{belowMin(name, shown, least)}
	case number > float64(most):
		return nil, problems{aboveMax(name, shown, most)}
	}
	n := int64(number)
	return &n, nil
}
