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
func (s *scan) scanMedia() (span, error) {
	r := s.reader
	switch r.kind() {
	case '[':
		start, err := r.open()
		if err != nil {
			return span{}, err
		}
		for r.kind() != ']' {
			if _, err := s.scanMedia(); err != nil {
				return span{}, err
			}
		}
		return r.close(start)
	case '{':
		start, err := r.open()
		if err != nil {
			return span{}, err
		}
		for r.kind() != '}' {
			name, _, err := r.key()
			if err != nil {
				return span{}, err
			}
			isType := string(name) == "type"
			value, err := s.partMember(name)
			if err != nil {
				return span{}, err
			}
			s.beyondText = s.beyondText || isType && !(value.Kind() == '"' && isTextType(r.string(value)))
		}
		return r.close(start)
	}
	_, at, err := r.value()
	return at, err
}

func (s *scan) partMember(name []byte) (jsontext.Value, error) {
	if kind := s.reader.kind(); holdsParts(name) && (kind == '[' || kind == '{') {
		_, err := s.scanMedia()
		return nil, err
	}
	s.beyondText = s.beyondText || isMedia(name)
	value, _, err := s.reader.value()
	return value, err
}

func (s *scan) object(value jsontext.Value) {
	if value.Kind() != '{' || s.beyondText {
		return
	}
	inner := newScan(s.route, value)
	defer inner.free()
	if _, err := inner.scanMedia(); err != nil {
		return // already validated, so this cannot fail
	}
	s.beyondText = inner.beyondText
}
