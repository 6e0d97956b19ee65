package request

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
)

// tools checks that the tools are objects. The upstream checks the rest.
func (s *scan) tools() span {
	r := s.reader
	start := r.Open()
	for i := 0; r.Kind() != ']'; i++ {
		if r.Kind() != '{' {
			if !s.knows(toolsField) {
				s.wrongType(toolsField, fmt.Sprintf("tools[%d]", i), "an object")
			}
			r.Value()
			continue
		}
		s.tool()
	}
	return r.close(start)
}

// tool reads a tool. A tool that the server runs, such as a search, adds its results to the prompt.
func (s *scan) tool() {
	r := s.reader
	r.Open()
	for r.Kind() != '}' {
		name, _ := r.key()
		isType := string(name) == "type"
		value, _ := r.value()
		callers := value.Kind() == 'n' || isString(value, "function") || isString(value, "custom")
		s.beyondText = s.beyondText || isType && !callers
	}
	r.Close()
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
func (s *scan) toolChoice() span {
	value, at := s.reader.value()
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
	return at
}

// responseFormat reads the type and a JSON schema. The upstream checks other types.
func (s *scan) responseFormat() span {
	value, at := s.reader.value()
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
	return at
}

func isName(value jsontext.Value) bool { return value.Kind() == '"' && len(value) > len(`""`) }

func isString(value jsontext.Value, text string) bool {
	if value.Kind() != '"' {
		return false
	}
	unquoted, err := jsontext.AppendUnquote(nil, value)
	return err == nil && string(unquoted) == text
}

func (s *scan) stops() span {
	value, at := s.reader.value()
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
	return at
}
