package request

import "github.com/go-json-experiment/json/jsontext"

// isTextType reports whether a content part or input item of this type contains only text.
func isTextType(name []byte) bool {
	switch string(name) {
	case "text", "refusal", "thinking", "redacted_thinking", "reasoning", // in chats and Messages
		"tool_use", "tool_result", "search_result",
		"input_text", "output_text", "reasoning_text", "summary_text", // in Responses
		"message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output":
		return true
	}
	return false
}

// isMedia reports whether a member's name suggests media. Some servers read media in any part.
func isMedia(name []byte) bool {
	for _, begins := range [...]string{"image", "input_image", "input_audio", "input_video", "input_file", "audio", "video", "file",
		"document"} {
		if len(name) >= len(begins) && string(name[:len(begins)]) == begins {
			return true
		}
	}
	return false
}

func holdsParts(name []byte) bool {
	switch string(name) {
	case "content", "output", "summary":
		return true
	}
	return false
}

// scanMedia reads a value of any type and records whether it may contain more than text.
func (s *scan) scanMedia() span {
	r := s.reader
	switch r.Kind() {
	case '[':
		start := r.Open()
		for r.Kind() != ']' {
			s.scanMedia()
		}
		return r.close(start)
	case '{':
		start := r.Open()
		for r.Kind() != '}' {
			name, _ := r.key()
			isType := string(name) == "type"
			value := s.partMember(name)
			s.beyondText = s.beyondText || isType && !(value.Kind() == '"' && isTextType(r.string(value)))
		}
		return r.close(start)
	}
	_, at := r.value()
	return at
}

func (s *scan) partMember(name []byte) jsontext.Value {
	if kind := s.reader.Kind(); holdsParts(name) && (kind == '[' || kind == '{') {
		s.scanMedia()
		return nil
	}
	s.beyondText = s.beyondText || isMedia(name)
	value, _ := s.reader.value()
	return value
}

func (s *scan) object(value jsontext.Value) {
	if value.Kind() != '{' || s.beyondText {
		return
	}
	inner := newScan(s.route, value)
	defer inner.free()
	inner.scanMedia()
	s.beyondText = inner.beyondText
}
