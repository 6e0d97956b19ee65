package request

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/service/gateway/apierror"
)

func (s *scan) messages() (span, error) {
	start, err := s.reader.open()
	if err != nil {
		return span{}, err
	}
	if s.reader.kind() == ']' {
		s.wrong(messagesField, "messages", apierror.EmptyArray, "messages: expected at least one message.")
	}
	for i := 0; s.reader.kind() != ']'; i++ {
		if err := s.message(i); err != nil {
			return span{}, err
		}
	}
	return s.reader.close(start)
}

type seen struct{ role, content, assistant bool }

func (s *scan) message(i int) error {
	r := s.reader
	if r.kind() != '{' {
		_, _, err := r.value()
		s.wrongType(messagesField, s.messagePath(i, ""), "an object")
		return err
	}
	start, err := r.open()
	if err != nil {
		return err
	}
	var has seen
	for r.kind() != '}' {
		if err := s.messageMember(i, &has); err != nil {
			return err
		}
	}
	if !has.role && !s.knows(messagesField) {
		s.wrong(messagesField, s.messagePath(i, ".role"), apierror.MissingParameter, "%s is missing.", s.messagePath(i, ".role"))
	}
	// An assistant message needs no content if it contains tool calls, reasoning, a refusal or audio.
	if !has.content && !has.assistant && !s.knows(messagesField) {
		s.wrong(messagesField, s.messagePath(i, ".content"), apierror.MissingParameter, "%s is missing.", s.messagePath(i, ".content"))
	}
	_, err = r.close(start)
	return err
}

// messageMember reads a member of a message. The upstream checks members that the contract does not cover.
func (s *scan) messageMember(i int, has *seen) error {
	r := s.reader
	name, _, err := r.key()
	if err != nil {
		return err
	}
	role, content, calls := string(name) == "role", string(name) == "content", string(name) == "tool_calls"
	kind := r.kind()
	if content && kind == '[' {
		has.content = true
		return s.parts(i)
	}
	media := isMedia(name)
	value, _, err := r.value()
	if err != nil || kind == 'n' {
		return err
	}
	s.beyondText = s.beyondText || media
	switch {
	case role:
		has.role = true
		s.role(i, value, has)
	case content:
		has.content = true
		if kind != '"' {
			s.wrongType(messagesField, s.messagePath(i, ".content"), "a string or an array of parts")
		}
	case calls && kind != '[':
		s.wrongType(messagesField, s.messagePath(i, ".tool_calls"), "an array")
	}
	return nil
}

func (s *scan) role(i int, value jsontext.Value, has *seen) {
	if value.Kind() != '"' {
		s.wrongType(messagesField, s.messagePath(i, ".role"), "a string")
		return
	}
	switch string(s.reader.string(value)) {
	case "assistant":
		has.assistant = true
	case "system", "user", "tool", "developer":
	default:
		s.wrong(messagesField, s.messagePath(i, ".role"), apierror.InvalidValue,
			"%s: expected system, developer, user, assistant or tool.", s.messagePath(i, ".role"))
	}
}

// messagePath returns the path of a message's member, such as messages[0].role. If a problem is
// already known, it returns "", because the path would not be reported.
func (s *scan) messagePath(i int, rest string) string {
	if s.knows(messagesField) {
		return ""
	}
	return fmt.Sprintf("messages[%d]%s", i, rest)
}

// parts reads content that is an array of typed objects. The upstream checks the types.
func (s *scan) parts(message int) error {
	start, err := s.reader.open()
	if err != nil {
		return err
	}
	for i := 0; s.reader.kind() != ']'; i++ {
		if err := s.part(message, i); err != nil {
			return err
		}
	}
	_, err = s.reader.close(start)
	return err
}

func (s *scan) part(message, i int) error {
	r := s.reader
	path := func(rest string) string {
		if s.knows(messagesField) {
			return ""
		}
		return s.messagePath(message, fmt.Sprintf(".content[%d]%s", i, rest))
	}
	if r.kind() != '{' {
		_, _, err := r.value()
		s.wrongType(messagesField, path(""), "an object")
		return err
	}
	start, err := r.open()
	if err != nil {
		return err
	}
	var typed, isText, text bool
	for r.kind() != '}' {
		name, _, err := r.key()
		if err != nil {
			return err
		}
		isType, isTheText := string(name) == "type", string(name) == "text"
		value, err := s.partMember(name)
		switch {
		case err != nil:
			return err
		case isType:
			typed = value.Kind() == '"'
			isText = typed && string(r.string(value)) == "text"
			s.beyondText = s.beyondText || typed && !isTextType(r.string(value))
		case isTheText:
			text = value.Kind() == '"'
		}
	}
	if !typed {
		s.wrongType(messagesField, path(".type"), "a string")
	}
	if isText && !text {
		s.wrongType(messagesField, path(".text"), "a string")
	}
	_, err = r.close(start)
	return err
}

func isEmpty(array jsontext.Value) bool { return len(bytes.TrimSpace(array[1:len(array)-1])) == 0 }
