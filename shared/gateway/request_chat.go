package gateway

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/model"
)

// messages reads the messages of a chat.
func (s *scan) messages() (span, error) {
	count := 0
	at, err := s.reader.array(func(i int) error {
		count++
		return s.message(i)
	})
	if count == 0 {
		s.wrong(messagesField, "messages", EmptyArray, "messages: expected at least one message.")
	}
	return at, err
}

// message reads one message. Members that the interface does not name, such as
// the name of a speaker or the id of a call, are the upstream's to judge.
func (s *scan) message(i int) error {
	r := s.reader
	// The path is written only for an error.
	path := func(rest string) string { return fmt.Sprintf("messages[%d]%s", i, rest) }
	if r.kind() != '{' {
		_, _, err := r.value()
		s.wrongType(messagesField, path(""), "an object")
		return err
	}
	var role, content, assistant, calls bool
	_, err := r.object(func(name []byte, _ span) error {
		kind := r.kind()
		switch {
		case string(name) == "role" && kind != 'n':
			value, _, err := r.value()
			if err != nil {
				return err
			}
			role = true
			if kind != '"' {
				s.wrongType(messagesField, path(".role"), "a string")
				return nil
			}
			switch string(r.string(value)) {
			case "assistant":
				assistant = true
			case "system", "user", "tool", "developer":
			default:
				s.wrong(messagesField, path(".role"), InvalidValue,
					"%s: expected one of system, developer, user, assistant and tool.", path(".role"))
			}
			return nil
		case string(name) == "content" && kind != 'n':
			content = true
			if kind == '[' {
				return s.parts(i)
			}
			if kind != '"' {
				s.wrongType(messagesField, path(".content"), "a string or an array of parts")
			}
		case string(name) == "tool_calls" && kind != 'n':
			value, _, err := r.value()
			if err != nil {
				return err
			}
			if kind != '[' {
				s.wrongType(messagesField, path(".tool_calls"), "an array")
				return nil
			}
			calls = !isEmpty(value)
			return nil
		}
		_, _, err := r.value()
		return err
	})
	switch {
	case err != nil:
	case !role:
		s.wrong(messagesField, path(".role"), MissingParameter, "%s is missing.", path(".role"))
	case !content && !(assistant && calls):
		s.wrong(messagesField, path(".content"), MissingParameter, "%s is missing.", path(".content"))
	}
	return err
}

// parts reads a content that is an array: objects, each with its type. What
// types there are is the upstream's to say.
func (s *scan) parts(message int) error {
	r := s.reader
	_, err := r.array(func(i int) error {
		path := func(rest string) string { return fmt.Sprintf("messages[%d].content[%d]%s", message, i, rest) }
		if r.kind() != '{' {
			_, _, err := r.value()
			s.wrongType(messagesField, path(""), "an object")
			return err
		}
		var typed, isText, text bool
		_, err := r.object(func(name []byte, _ span) error {
			kind := r.kind()
			value, _, err := r.value()
			switch {
			case err != nil:
				return err
			case string(name) == "type":
				typed = kind == '"'
				isText = typed && string(r.string(value)) == "text"
			case string(name) == "text":
				text = kind == '"'
			}
			return nil
		})
		switch {
		case err != nil:
		case !typed:
			s.wrongType(messagesField, path(".type"), "a string")
		case isText && !text:
			s.wrongType(messagesField, path(".text"), "a string")
		}
		return err
	})
	return err
}

func isEmpty(array jsontext.Value) bool {
	return len(bytes.TrimSpace(array[1:len(array)-1])) == 0
}

// tools reads the tools: objects, whose inside is the upstream's to judge.
func (s *scan) tools() (span, error) {
	return s.reader.array(func(i int) error {
		value, _, err := s.reader.value()
		if err == nil && value.Kind() != '{' {
			s.wrongType(toolsField, fmt.Sprintf("tools[%d]", i), "an object")
		}
		return err
	})
}

// toolChoiceWord checks a tool_choice that is no object.
func (s *scan) toolChoiceWord(value jsontext.Value) {
	if value.Kind() != '"' {
		s.wrongType(toolChoiceField, "tool_choice", "a string or an object")
		return
	}
	switch string(s.reader.string(value)) {
	case "auto", "none", "required":
	default:
		s.wrong(toolChoiceField, "tool_choice", InvalidValue,
			"tool_choice: expected auto, none, required, or an object that names a function.")
	}
}

// toolChoice reads {type: function, function: {name}}.
func (s *scan) toolChoice() (span, error) {
	r := s.reader
	var function, named bool
	at, err := r.object(func(name []byte, _ span) error {
		if string(name) == "function" && r.kind() == '{' {
			_, err := r.object(func(name []byte, _ span) error {
				value, _, err := r.value()
				if err == nil && string(name) == "name" {
					named = value.Kind() == '"' && len(value) > len(`""`)
				}
				return err
			})
			return err
		}
		value, _, err := r.value()
		if err == nil && string(name) == "type" {
			function = value.Kind() == '"' && string(r.string(value)) == "function"
		}
		return err
	})
	switch {
	case err != nil:
	case !function:
		s.wrong(toolChoiceField, "tool_choice.type", InvalidValue, `tool_choice.type: expected "function".`)
	case !named:
		s.wrong(toolChoiceField, "tool_choice.function.name", MissingParameter, "tool_choice.function.name: expected the name of a function.")
	}
	return at, err
}

// responseFormat reads {type: text}, {type: json_object} or {type: json_schema,
// json_schema: {...}}.
func (s *scan) responseFormat() (span, error) {
	r := s.reader
	var kind string
	var schema bool
	at, err := r.object(func(name []byte, _ span) error {
		value, _, err := r.value()
		switch {
		case err != nil:
			return err
		case string(name) == "type" && value.Kind() == '"':
			kind = string(r.string(value))
		case string(name) == "json_schema":
			schema = value.Kind() == '{'
		}
		return nil
	})
	switch {
	case err != nil:
	case kind != "text" && kind != "json_object" && kind != "json_schema":
		s.wrong(responseFormatField, "response_format.type", InvalidValue, "response_format.type: expected one of json_object, json_schema and text.")
	case kind == "json_schema" && !schema:
		s.wrong(responseFormatField, "response_format.json_schema", MissingParameter, "response_format.json_schema: expected an object.")
	}
	return at, err
}

// stops reads an array of stop sequences.
func (s *scan) stops() (span, error) {
	count := 0
	at, err := s.reader.array(func(int) error {
		count++
		value, _, err := s.reader.value()
		if err == nil && value.Kind() != '"' {
			s.wrongType(stopField, "stop", "a string or an array of strings")
		}
		return err
	})
	if s.route == model.Chat && count > maxStops {
		s.wrong(stopField, "stop", ArrayTooLong, "stop: expected at most %d stop sequences.", maxStops)
	}
	return at, err
}
