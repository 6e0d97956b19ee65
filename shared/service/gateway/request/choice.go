package request

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
)

// tools checks that the tools are objects. The upstream checks the rest.
func (s *scan) tools() (span, error) {
	r := s.reader
	start, err := r.open()
	if err != nil {
		return span{}, err
	}
	for i := 0; r.kind() != ']'; i++ {
		if r.kind() != '{' {
			if !s.knows(toolsField) {
				s.wrongType(toolsField, fmt.Sprintf("tools[%d]", i), "an object")
			}
			if _, _, err := r.value(); err != nil {
				return span{}, err
			}
			continue
		}
		if err := s.tool(); err != nil {
			return span{}, err
		}
	}
	return r.close(start)
}

// tool reads a tool. A tool that the server runs, such as a search, adds its results to the prompt.
func (s *scan) tool() error {
	r := s.reader
	start, err := r.open()
	if err != nil {
		return err
	}
	for r.kind() != '}' {
		name, _, err := r.key()
		if err != nil {
			return err
		}
		isType := string(name) == "type"
		value, _, err := r.value()
		if err != nil {
			return err
		}
		callers := value.Kind() == 'n' || isString(value, "function") || isString(value, "custom")
		s.beyondText = s.beyondText || isType && !callers
	}
	_, err = r.close(start)
	return err
}

func (s *scan) toolChoiceWord(value jsontext.Value) {
	if value.Kind() != '"' {
		s.wrongType(toolChoiceField, "tool_choice", "a string or an object")
		return
	}
	switch string(s.reader.string(value)) {
	case "auto", "none", "required":
	default:
		s.wrong(toolChoiceField, "tool_choice", apierror.InvalidValue,
			"tool_choice: expected auto, none, required, or an object that names a function.")
	}
}

// toolChoice reads {type: function, function: {name}}. The upstream checks other types.
func (s *scan) toolChoice() (span, error) {
	value, at, err := s.reader.value()
	if err != nil {
		return at, err
	}
	var typed, function, named bool
	for name, value := range members(value) {
		switch {
		case name == "type":
			typed, function = isName(value), isString(value, "function")
		case name == "function" && value.Kind() == '{':
			for name, value := range members(value) {
				if name == "name" {
					named = isName(value)
				}
			}
		}
	}
	switch {
	case !typed:
		s.wrong(toolChoiceField, "tool_choice.type", apierror.InvalidValue, `tool_choice.type: expected a type, such as "function".`)
	case function && !named:
		s.wrong(toolChoiceField, "tool_choice.function.name", apierror.MissingParameter,
			"tool_choice.function.name: expected the name of a function.")
	}
	return at, nil
}

// responseFormat reads the type and a JSON schema. The upstream checks other types.
func (s *scan) responseFormat() (span, error) {
	value, at, err := s.reader.value()
	if err != nil {
		return at, err
	}
	var typed, bySchema, schema bool
	for name, value := range members(value) {
		switch name {
		case "type":
			typed, bySchema, s.asText = isName(value), isString(value, "json_schema"), isString(value, "text")
		case "json_schema":
			schema = value.Kind() == '{'
		}
	}
	switch {
	case !typed:
		s.wrong(responseFormatField, "response_format.type", apierror.InvalidValue,
			"response_format.type: expected a type, such as json_object, json_schema or text.")
	case bySchema && !schema:
		s.wrong(responseFormatField, "response_format.json_schema", apierror.MissingParameter,
			"response_format.json_schema: expected an object.")
	}
	return at, nil
}

func isName(value jsontext.Value) bool { return value.Kind() == '"' && len(value) > len(`""`) }

func isString(value jsontext.Value, text string) bool {
	if value.Kind() != '"' {
		return false
	}
	unquoted, err := jsontext.AppendUnquote(nil, value)
	return err == nil && string(unquoted) == text
}

func (s *scan) stops() (span, error) {
	value, at, err := s.reader.value()
	if err != nil {
		return at, err
	}
	count := 0
	for stop := range elements(value) {
		count++
		if stop.Kind() != '"' {
			s.wrongType(stopField, "stop", "a string or an array of strings")
		}
	}
	if s.route == catalog.Chat && count > maxStops {
		s.wrong(stopField, "stop", apierror.ArrayTooLong, "stop: expected at most %d stop sequences.", maxStops)
	}
	return at, nil
}
