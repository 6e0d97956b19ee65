package request

import (
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
)

// prompt checks a completion's prompt, in any of its four formats.
func (s *scan) prompt(f field, value jsontext.Value) {
	const want = "a string, an array of strings, an array of token ids, or an array of such arrays"
	s.prompts = 1
	if value.Kind() == '"' {
		return
	}
	if value.Kind() != '[' {
		s.wrongType(f, f.String(), want)
		return
	}
	if isEmpty(value) {
		s.wrong(f, f.String(), apierror.EmptyArray, "%s: expected at least one text or token id.", f)
		return
	}
	if n, ok := tokenIDs(value); ok {
		s.tokenIDs, s.longestIDs = n, n
		return
	}
	s.prompts = 0
	var form jsontext.Kind
	for element := range elements(value) {
		s.prompts++
		kind := element.Kind()
		if form == 0 {
			form = kind
		}
		n, ids := 0, false
		if kind == '[' {
			n, ids = tokenIDs(element)
			s.tokenIDs, s.longestIDs = s.tokenIDs+n, max(s.longestIDs, n)
		}
		if kind != form || kind != '"' && !ids {
			s.wrongType(f, f.String(), want)
			return
		}
	}
}

// input checks an embeddings input, or a Responses input that is not an array. An embeddings input has a prompt's
// formats.
func (s *scan) input(value jsontext.Value) {
	switch {
	case s.route == catalog.Embeddings:
		s.prompt(inputField, value)
	case s.route == catalog.Speech && value.Kind() == '"':
		length := utf8.RuneCount(s.reader.string(value))
		if s.characters += length; length == 0 {
			s.wrong(inputField, "input", apierror.InvalidValue, "input: expected text.")
		}
	case s.route == catalog.Speech:
		s.wrongType(inputField, "input", "a string")
	case value.Kind() != '"':
		s.wrongType(inputField, "input", "a string or an array")
	}
}

// items reads an input of Responses that is an array. The upstream checks the items.
func (s *scan) items() span {
	at := s.scanMedia()
	if isEmpty(s.reader.body[at.start:at.end]) {
		s.wrong(inputField, "input", apierror.EmptyArray, "input: expected at least one item.")
	}
	return at
}

// texts checks the texts to rank or score: a string, an object with a text, or an array of these.
// Each pair of texts is a separate prompt.
func (s *scan) texts(f field, value jsontext.Value) {
	n := 1
	switch value.Kind() {
	case '"', '{':
		s.object(value)
		if f == documentsField && value.Kind() == '"' {
			s.wrongType(f, f.String(), "an array")
		}
	case '[':
		n = 0
		for element := range elements(value) {
			s.object(element)
			if n++; element.Kind() != '"' && element.Kind() != '{' {
				s.wrongType(f, fmt.Sprintf("%s[%d]", f, n-1), "a string or an object")
				return
			}
		}
		if n == 0 {
			s.wrong(f, f.String(), apierror.EmptyArray, "%s: expected at least one text.", f)
		}
	default:
		s.wrongType(f, f.String(), "a string or an array")
	}
	s.prompts = max(s.prompts, n)
}

// maxInputs limits the texts that one call embeds, ranks or scores.
const maxInputs = 2048

// tokenIDs returns the number of elements. ok is false unless all are token ids, which are non-negative integers.
func tokenIDs(array jsontext.Value) (n int, ok bool) {
	inside := array[1 : len(array)-1]
	for _, c := range inside {
		switch {
		case c == ',':
			n++
		case '0' <= c && c <= '9', c == ' ', c == '\t', c == '\n', c == '\r':
		default:
			return 0, false
		}
	}
	if isEmpty(array) {
		return 0, true
	}
	return n + 1, true
}

func elements(array jsontext.Value) iter.Seq[jsontext.Value] {
	return func(yield func(jsontext.Value) bool) {
		r := newJSONReader(array)
		defer r.free()
		r.Open()
		for r.Kind() != ']' {
			if element, _ := r.value(); !yield(element) {
				return
			}
		}
	}
}

func members(object jsontext.Value) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		r := newJSONReader(object)
		defer r.free()
		r.Open()
		for r.Kind() != '}' {
			name, _ := r.key()
			key := string(name)
			if value, _ := r.value(); !yield(key, value) {
				return
			}
		}
	}
}

// bound checks a request against the row's limits. An expensive call would delay all others.
func (s *scan) bound(m *catalog.Inference) {
	for f := nField; f <= bestOfField; f++ {
		if s.numbers[f] > m.MaxChoices {
			s.wrong(f, f.String(), apierror.IntegerTooLarge, "%s: expected an integer of at most %d.", f, m.MaxChoices)
		}
	}
	most, prompt := maxInputs, required(s.route)[0]
	if s.route == catalog.Completions {
		most = m.MaxPrompts
	}
	if s.prompts > most {
		s.wrong(prompt, prompt.String(), apierror.ArrayTooLong, "%s: expected at most %d prompts.", prompt, most)
	}
}

// maxTokenBytes is twice the length of a vocabulary's longest token, which is a run of spaces.
const maxTokenBytes = 256

// fits reports whether the prompt may fit into the model's context. It underestimates the token count, so it
// never rejects a prompt that fits. ids is the number of token ids in the longest prompt.
func (r *Request) fits(ids int) bool {
	most := r.Model.ContextLength
	if r.Route == catalog.Speech {
		return most == 0 || r.Characters <= most
	}
	if ids > most {
		return false
	}
	if len(r.body)/maxTokenBytes <= most {
		return true // the usual case
	}
	if r.Route == catalog.Embeddings || r.Route == catalog.Rerank || r.Route == catalog.Score {
		return true // each text is a separate prompt that servers may truncate
	}
	text, longest := 0, 0
	count := func(piece []byte) { text, longest = text+len(piece), max(longest, len(piece)) }
	if r.Route == catalog.Completions {
		r.PromptTexts(count)
		return longest/maxTokenBytes <= most // each text is a separate prompt
	}
	if r.Route != catalog.Chat {
		r.PromptTexts(count)
		return text/maxTokenBytes <= most
	}
	// Count only the contents, because a template may omit anything else.
	prompt := jsontext.Value(r.body[r.prompt.start:r.prompt.end])
	reader := newJSONReader(prompt)
	defer reader.free()
	for message := range elements(prompt) {
		for name, value := range members(message) {
			if name == "content" {
				reader.content(value, count)
			}
		}
	}
	return text/maxTokenBytes <= most
}

// tokensAround is the approximate number of tokens that a chat template adds to each message.
const tokensAround = 4

// mediaTokens is the estimate for an image, audio or file, in addition to a token for each KiB.
const mediaTokens = 1000

// PromptTexts calls yield with each piece of text that the model may read. A template may render any member of a
// message and any field. A piece is valid only until yield returns. tokens is the number of token ids in the prompt
// plus estimates for media and the chat template.
func (r *Request) PromptTexts(yield func(text []byte)) (tokens int) {
	reader, prompts := newJSONReader(r.body), required(r.Route)
	defer reader.free()
	reader.Open()
	for reader.Kind() != '}' {
		name, _ := reader.key()
		f := fieldOf(r.Route, name)
		isTemplate := f == otherField && !isUsual(r.Route, name)
		switch string(name) {
		case "system", "instructions", "suffix":
			tokens += reader.texts(yield)
			continue
		case "tools", "functions", "response_format", "text", "output_config", "chat_template_kwargs":
			isTemplate = true
		}
		if slices.Contains(prompts, f) {
			tokens += reader.texts(yield)
		} else if value, _ := reader.value(); isTemplate && !isScalar(value) {
			yield(value)
		}
	}
	return tokens + r.promptIDs
}

func isScalar(value jsontext.Value) bool {
	k := value.Kind()
	return k != '"' && k != '[' && k != '{'
}

func (r *jsonReader) content(value jsontext.Value, yield func(text []byte)) {
	switch value.Kind() {
	case '"':
		yield(r.string(value))
	case '[':
		for part := range elements(value) {
			for name, value := range members(part) {
				if name == "text" && value.Kind() == '"' {
					yield(r.string(value))
				}
			}
		}
	}
}

// maxIdentifier is the length in bytes of the longest identifiers that are not counted as text.
const maxIdentifier = 64

// texts reads one value, which may be a prompt of any type, and calls yield with each of its texts. tokens is an
// estimate for media and the chat template.
func (r *jsonReader) texts(yield func(text []byte)) (tokens int) {
	switch r.Kind() {
	case '"':
		value, _ := r.value()
		yield(r.string(value))
	case '[':
		r.Open()
		for r.Kind() != ']' {
			tokens += r.texts(yield)
		}
		r.Close()
	case '{':
		r.Open()
		for r.Kind() != '}' {
			name, _ := r.key()
			var isSource, isText bool
			media, most := isMedia(name), 0
			switch string(name) {
			case "role":
				tokens += tokensAround
				most = maxIdentifier
			case "type", "id", "call_id", "tool_call_id", "tool_use_id", "status", "filename":
				media, most = false, maxIdentifier
			case "source":
				isSource = true
			case "input", "tool_calls":
			default:
				isText = !media
			}
			if isText {
				tokens += r.texts(yield)
			} else if value, _ := r.value(); media || isSource && isMediaSource(value) {
				tokens += mediaTokens + len(value)>>10
			} else if len(value) > most {
				yield(value)
			}
		}
		r.Close()
	default:
		r.Value()
	}
	return tokens
}

func isMediaSource(value jsontext.Value) bool {
	for name, value := range members(value) {
		if name == "type" {
			return slices.Contains([]string{`"base64"`, `"url"`, `"file"`}, string(value))
		}
	}
	return false
}
