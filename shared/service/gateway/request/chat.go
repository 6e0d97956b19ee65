package request

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/service/gateway/apierror"
)

func (s *scan) messages() span {
	start := s.reader.Open()
	if s.reader.Kind() == ']' {
		s.wrong(messagesField, "messages", apierror.EmptyArray, "messages: expected at least one message.")
	}
	for i := 0; s.reader.Kind() != ']'; i++ {
		s.message(i)
	}
	return s.reader.close(start)
}

type seen struct{ role, content, assistant bool }

func (s *scan) message(i int) {
	r := s.reader
	if r.Kind() != '{' {
		r.Value()
		s.wrongType(messagesField, s.messagePath(i, ""), "an object")
		return
	}
	r.Open()
	var has seen
	for r.Kind() != '}' {
		s.messageMember(i, &has)
	}
	if !has.role && !s.knows(messagesField) {
		s.wrong(messagesField, s.messagePath(i, ".role"), apierror.MissingParameter, "%s is missing.", s.messagePath(i, ".role"))
	}
	// An assistant message needs no content if it contains tool calls, reasoning, a refusal or audio.
	if !has.content && !has.assistant && !s.knows(messagesField) {
		s.wrong(messagesField, s.messagePath(i, ".content"), apierror.MissingParameter, "%s is missing.", s.messagePath(i, ".content"))
	}
	r.Close()
}

// messageMember reads a member of a message. The upstream checks members that the contract does not cover.
func (s *scan) messageMember(i int, has *seen) {
	r := s.reader
	name, _ := r.key()
	role, content, calls := string(name) == "role", string(name) == "content", string(name) == "tool_calls"
	kind := r.Kind()
	if content && kind == '[' {
		has.content = true
		s.parts(i)
		return
	}
	media := !role && !content && isMedia(name)
	value, _ := r.value()
	if kind == 'n' {
		return
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
func (s *scan) parts(message int) {
	s.reader.Open()
	for i := 0; s.reader.Kind() != ']'; i++ {
		s.part(message, i)
	}
	s.reader.Close()
}

func (s *scan) part(message, i int) {
	r := s.reader
	path := func(rest string) string {
		if s.knows(messagesField) {
			return ""
		}
		return s.messagePath(message, fmt.Sprintf(".content[%d]%s", i, rest))
	}
	if r.Kind() != '{' {
		r.Value()
		s.wrongType(messagesField, path(""), "an object")
		return
	}
	r.Open()
	var typed, isText, text bool
	for r.Kind() != '}' {
		name, _ := r.key()
		isType, isTheText := string(name) == "type", string(name) == "text"
		switch value := s.partMember(name); {
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
	r.Close()
}

func isEmpty(array jsontext.Value) bool { return len(bytes.TrimSpace(array[1:len(array)-1])) == 0 }
