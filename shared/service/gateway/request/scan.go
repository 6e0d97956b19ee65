package request

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
)

// maxModels and maxStops are limits of docs/contract/limits.md#gateway-limits.
const maxModels = 8

const maxStops = 4

type scan struct {
	route  catalog.Route
	reader *jsonReader
	// row is the model's row once it is known. unusual means that the meaning of some field depends on the row.
	row     *catalog.Inference
	unusual bool
	members [fieldCount]sentField
	last    int

	// problem is the error of the first invalid field in the contract's order.
	problem      *apierror.Error
	problemField field

	model  string
	models []string
	// numbers contains the values of integer fields. respelled marks values written like 5.0, which
	// some servers reject.
	numbers   [fieldCount]int
	respelled [fieldCount]bool
	// tokenIDs is the number of token ids in all prompts together. longestIDs is the number in the longest prompt.
	tokenIDs, longestIDs, prompts int
	// characters is the length of the text of speech and of its instructions.
	characters int
	asText     bool
	beyondText bool

	// system is a system prompt outside the messages. cacheKey is the caller's prompt_cache_key.
	system, cacheKey        span
	kwargs, streaming       object
	effort, thinking, usage sentField
}

var scans = sync.Pool{New: func() any { return &scan{reader: new(jsonReader)} }}

// newScan returns a scan of valid JSON.
func newScan(route catalog.Route, body []byte) *scan {
	s := scans.Get().(*scan)
	s.route = route
	s.reader.read(body)
	return s
}

func (s *scan) clear() {
	reader := s.reader
	*s = scan{}
	s.reader = reader
}

func (s *scan) free() {
	s.reader.reset()
	s.clear()
	scans.Put(s)
}

// wrong records a field's problem unless an earlier field already has one.
func (s *scan) wrong(f field, param, code, format string, args ...any) {
	if !s.knows(f) {
		s.problem, s.problemField = apierror.Invalid(param, code, format, args...), f
	}
}

// knows reports whether this field or an earlier one already has a problem. If so, nothing needs to be reported.
func (s *scan) knows(f field) bool { return s.problem != nil && f >= s.problemField }

func (s *scan) wrongType(f field, param, want string) {
	if !s.knows(f) {
		s.wrong(f, param, apierror.InvalidType, "%s: expected %s.", param, want)
	}
}

func (s *scan) body() {
	r := s.reader
	r.Open()
	s.last = -1
	var before *sentField
	for ordinal := 0; r.Kind() != '}'; ordinal++ {
		name, key := r.key()
		if before != nil {
			before.next, before = key.start, nil
		}
		f := s.fieldOf(name)
		if f == otherField {
			// Compute this first, because reading the value may overwrite the name.
			noted := noteOf(s.route, name)
			value, at := s.other(noted, name)
			s.last = at.end
			s.note(noted, value, at)
			continue
		}
		m := &s.members[f]
		*m = sentField{sent: true, key: key, ordinal: ordinal, previous: s.last, next: -1}
		if kind := r.Kind(); kind == 'n' {
			_, m.value = r.value()
		} else {
			m.kind = kind
			m.value = s.field(f, kind)
		}
		s.last, before = m.value.end, m
	}
}

// noted is a field that is forwarded unchanged but whose position is needed later.
type noted int

const (
	nothingNoted noted = iota
	systemNoted
	cacheKeyNoted
	spokenNoted
)

func noteOf(route catalog.Route, name []byte) noted {
	switch string(name) {
	case "prompt_cache_key":
		return cacheKeyNoted
	case "system":
		if route == catalog.Messages {
			return systemNoted
		}
	case "instructions":
		switch route {
		case catalog.Responses:
			return systemNoted
		case catalog.Speech:
			return spokenNoted
		}
	}
	return nothingNoted
}

// other reads a field that is forwarded unchanged. Only a system prompt is examined part by part.
func (s *scan) other(what noted, name []byte) (jsontext.Value, span) {
	if what == systemNoted && s.reader.Kind() == '[' {
		return nil, s.scanMedia()
	}
	s.beyondText = s.beyondText || isMedia(name) && !isUsual(s.route, name)
	return s.reader.value()
}

func (s *scan) note(what noted, value jsontext.Value, at span) {
	switch {
	case what == systemNoted:
		s.system = at
	case what == cacheKeyNoted && value.Kind() == '"':
		s.cacheKey = at
	case what == spokenNoted && value.Kind() == '"':
		s.characters += utf8.RuneCount(s.reader.string(value))
	}
}

func (s *scan) fieldOf(name []byte) field {
	f := fieldOf(s.route, name)
	if f != otherField {
		return f
	}
	if s.row != nil && string(name) == s.row.MaxTokensField && (s.route == catalog.Chat || s.route == catalog.Completions) {
		return rowTokensField
	}
	if known, ok := looksLike(s.route, name); ok {
		s.wrong(known, string(name), apierror.InvalidValue, "%q: the name of this field must be written %q.", name, known)
	}
	if misplaced(s.route, name) || s.row != nil && s.row.MaxTokensField == string(name) {
		s.wrong(otherField, string(name), apierror.UnknownParameter, "%s: the route does not support this field.", name)
	}
	if isUsual(s.route, name) {
		return otherField
	}
	s.unusual = true
	if s.row != nil && !s.row.Takes(string(name)) {
		shown := string(name[:min(len(name), maxParam)])
		s.wrong(otherField, shown, apierror.UnknownParameter, "%q: the model does not support this field.", shown)
	}
	return otherField
}

func (s *scan) field(f field, kind jsontext.Kind) span {
	switch {
	case f == messagesField && kind == '[':
		return s.messages()
	case f == inputField && kind == '[' && s.route == catalog.Responses:
		return s.items()
	case f == toolsField && kind == '[':
		return s.tools()
	case f == stopField && kind == '[':
		return s.stops()
	case f == toolChoiceField && kind == '{':
		return s.toolChoice()
	case f == responseFormatField && kind == '{':
		return s.responseFormat()
	case f == templateKwargsField && kind == '{':
		return s.templateKwargs()
	case f == streamOptionsField && kind == '{':
		return s.streamOptions()
	}
	value, at := s.reader.value()
	s.whole(f, kind, value)
	return at
}

func (s *scan) whole(f field, kind jsontext.Kind, value jsontext.Value) {
	switch f {
	case modelField:
		s.slug(value)
	case modelsField:
		s.slugs(value)
	case streamField, ignoreEOSField:
		if kind != 't' && kind != 'f' {
			s.wrongType(f, f.String(), "a boolean")
		}
	case temperatureField:
		s.number(f, value, 0, 2)
	case topPField:
		// The contract sets no range, so the upstream checks it. Only infinity is rejected.
		s.number(f, value, -math.MaxFloat64, math.MaxFloat64)
	case frequencyPenaltyField, presencePenaltyField:
		s.number(f, value, -2, 2)
	case inputField:
		s.input(value)
	case queryField, text1Field, text2Field, documentsField:
		s.texts(f, value)
	case storeField:
		if kind != 't' && kind != 'f' {
			s.wrongType(f, f.String(), "a boolean")
		}
	case backgroundField:
		if kind != 'f' {
			s.wrong(f, f.String(), apierror.InvalidValue, "%s: expected false, because calls do not run in the background.", f)
		}
	case previousResponseField, conversationField:
		s.wrong(f, f.String(), apierror.InvalidValue, "%s: not supported here; send the complete input.", f)
	case maxTokensField, maxCompletionTokensField, maxOutputTokensField:
		s.limit(f, f.String(), value)
	case rowTokensField:
		s.limit(f, s.row.MaxTokensField, value)
	case nField, bestOfField:
		s.integer(f, f.String(), value, 1)
	case promptField:
		s.prompt(f, value)
	case reasoningEffortField:
		if kind != '"' {
			s.wrongType(f, f.String(), "a string")
		}
	case stopField:
		if kind != '"' {
			s.wrongType(f, f.String(), "a string or an array of strings")
		}
	case toolChoiceField:
		s.toolChoiceWord(value)
	case messagesField, toolsField:
		s.wrongType(f, f.String(), "an array")
	default:
		s.wrongType(f, f.String(), "an object")
	}
}

func (s *scan) slug(value jsontext.Value) {
	if value.Kind() != '"' {
		s.wrongType(modelField, "model", "a string")
		return
	}
	if s.model = string(s.reader.string(value)); s.model == "" {
		s.wrong(modelField, "model", apierror.InvalidValue, "model: expected the name of a model.")
	}
}

func (s *scan) slugs(value jsontext.Value) {
	s.models = nil
	if value.Kind() != '[' {
		s.wrongType(modelsField, "models", "an array of strings")
		return
	}
	for name := range elements(value) {
		if len(s.models) == maxModels {
			s.wrong(modelsField, "models", apierror.ArrayTooLong, "models: expected at most %d names.", maxModels)
			return
		}
		at := modelsPath(len(s.models))
		if name.Kind() != '"' {
			s.wrongType(modelsField, at, "a string")
			return
		}
		slug := string(s.reader.string(name))
		if slug == "" {
			s.wrong(modelsField, at, apierror.InvalidValue, "%s: expected the name of a model.", at)
			return
		}
		s.models = append(s.models, slug)
	}
	if len(s.models) == 0 {
		s.wrong(modelsField, "models", apierror.EmptyArray, "models: expected at least one name.")
	}
}

func modelsPath(i int) string { return fmt.Sprintf("models[%d]", i) }

func (s *scan) number(f field, value jsontext.Value, low, high float64) {
	if value.Kind() != '0' {
		s.wrongType(f, f.String(), "a number")
		return
	}
	n, err := strconv.ParseFloat(string(value), 64)
	switch {
	case err != nil && n == 0:
		s.wrongType(f, f.String(), "a number")
	case n < low:
		s.wrong(f, f.String(), apierror.BelowMinimum, "%s: expected a number of at least %g.", f, low)
	case n > high:
		s.wrong(f, f.String(), apierror.AboveMaximum, "%s: expected a number of at most %g.", f, high)
	}
}

func (s *scan) limit(f field, name string, value jsontext.Value) {
	// A text completion, unlike a chat, may ask for 0 tokens to get its prompt echoed with probabilities.
	least := 1
	if s.route == catalog.Completions {
		least = 0
	}
	s.integer(f, name, value, least)
}

// integer reads an integer, which may be written as 5.0. A value that overflows becomes the largest
// int, because all these fields are clamped.
func (s *scan) integer(f field, name string, value jsontext.Value, least int) {
	whole, fraction, respelled := bytes.Cut(value, []byte("."))
	n, err := strconv.ParseInt(string(whole), 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) || len(bytes.Trim(fraction, "0")) > 0 {
		s.wrongType(f, name, "an integer")
		return
	}
	if int(n) < least {
		s.wrong(f, name, apierror.IntegerTooSmall, "%s: expected an integer of at least %d.", name, least)
		return
	}
	s.numbers[f], s.respelled[f] = int(n), respelled
}

// templateKwargs reads chat_template_kwargs, which is forwarded unchanged except for two members.
func (s *scan) templateKwargs() span {
	return s.options(&s.kwargs, func(name []byte) *sentField {
		switch string(name) {
		case "reasoning_effort":
			return &s.effort
		case "enable_thinking":
			return &s.thinking
		}
		return nil
	})
}

func (s *scan) streamOptions() span {
	at := s.options(&s.streaming, func(name []byte) *sentField {
		if string(name) == "include_usage" {
			return &s.usage
		}
		return nil
	})
	if kind := s.usage.kind; s.usage.present() && kind != 't' && kind != 'f' {
		s.wrongType(streamOptionsField, "stream_options.include_usage", "a boolean")
	}
	return at
}

func (s *scan) options(o *object, find func(name []byte) *sentField) span {
	r := s.reader
	start := r.Open()
	o.open, o.empty = start+1, true
	for r.Kind() != '}' {
		name, key := r.key()
		target, kind := find(name), r.Kind()
		_, value := r.value()
		if target != nil {
			*target = sentField{sent: true, key: key, value: value}
			if kind != 'n' {
				target.kind = kind
			}
		}
		o.empty, o.last = false, value.end
	}
	return r.close(start)
}
