// Package dialect translates between chat completions and two other dialects: Messages and
// Responses (docs/contract/dialects.md). It rejects a request that uses a feature that chat lacks;
// the error contains the field's path. Texts are copied as JSON without decoding them.
package dialect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
)

type Call struct {
	ID string
	// Model is the model's name as JSON. Created is the time of the call, as a Unix time in seconds.
	Model   []byte
	Created int64
	// PromptTokens estimates the prompt's tokens, which servers report only at the end of a stream.
	PromptTokens func() int64
	// Kept means that the response will be stored. Previous is the response that the call continues, as JSON, or nil.
	Kept     bool
	Previous []byte
	// Keep receives the response at the end of a stream. It may be nil.
	Keep func(response []byte)
	// Send is called after each event of a stream. It receives the output and returns the unsent rest.
	Send func(out []byte) []byte
}

// chatOnly reports whether a chat field has a different name or no equivalent in the other dialects.
func chatOnly(name string) bool {
	switch name {
	case "messages", "prompt", "stop", "n", "best_of", "max_tokens", "max_completion_tokens", "stream_options",
		"response_format", "functions", "function_call", "logprobs", "audio", "modalities", "prediction",
		"reasoning_effort", "tools", "tool_choice":
		return true
	}
	return false
}

// Renamed converts an error about the chat request to the dialect's field names.
func Renamed(route catalog.Route, e *apierror.Error) *apierror.Error {
	prompt, limit := "messages", "max_tokens"
	if route == catalog.Responses {
		prompt, limit = "input", "max_output_tokens"
	}
	renamed := *e
	for from, to := range map[string]string{"messages": prompt, "max_tokens": limit} {
		if e.Param == from {
			renamed.Param, renamed.Message = to, strings.Replace(e.Message, from, to, 1)
		}
	}
	return &renamed
}

type kind int

const (
	none kind = iota
	thought
	said
	refused
	called
)

// parts receives the parts of a completion in order. A part is closed before the next one opens.
type parts interface {
	// open starts a part. id and name describe a function call.
	open(k kind, id, name string)
	// add appends text, the content of a JSON string without its quotes.
	add(text string)
	// addObject adds the arguments of a function call that are an object instead of a string.
	addObject(text string)
	shut()
}

type walk struct {
	parts parts
	now   kind
	calls ToolCalls
	// call is the open or last call. waiting lists later calls that started before it was complete,
	// and waitingBytes is the size of their arguments.
	call         *ToolCall
	waiting      []*ToolCall
	waitingBytes int
	finish, stop string
	// wantsLogprobs means that the caller asked for token probabilities. logprobs holds the
	// probabilities of the next text, as array elements.
	wantsLogprobs bool
	logprobs      []byte
}

// MaxCalls limits the number of function calls in a response. In both dialects, an empty call takes
// hundreds of times as many bytes as in chat.
const MaxCalls = 1000

var ErrManyCalls = fmt.Errorf("the response calls more than %d functions", MaxCalls)

// ErrInterleaved means that a server continued a function call although the call was complete or text had followed
// it.
var ErrInterleaved = errors.New("the response continues an earlier function call")

func (w *walk) choice(choice gjson.Result) error {
	message := choice.Get("delta")
	if !message.IsObject() {
		message = choice.Get("message")
	}
	var reasoning, content, refusal, calls gjson.Result
	message.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "reasoning_content":
			reasoning = value
		case "reasoning":
			if reasoning.Type != gjson.String {
				reasoning = value
			}
		case "content":
			content = value
		case "refusal":
			refusal = value
		case "tool_calls":
			calls = value
		}
		return true
	})
	w.text(thought, reasoning)
	if w.wantsLogprobs && content.Str != "" {
		w.addLogprobs(choice.Get("logprobs.content"))
	}
	w.text(said, content)
	w.text(refused, refusal)
	if err := w.callsOf(calls); err != nil {
		return err
	}
	if reason := choice.Get("finish_reason"); reason.Type == gjson.String {
		w.finish = strings.Clone(reason.Str)
		if stop := choice.Get("stop_reason"); stop.Type == gjson.String {
			w.stop = strings.Clone(stop.Str)
		}
	}
	return nil
}

func (w *walk) addLogprobs(tokens gjson.Result) {
	if !tokens.IsArray() {
		return
	}
	tokens.ForEach(func(_, token gjson.Result) bool {
		if token.IsObject() {
			w.logprobs = appendElement(w.logprobs, token.Raw)
		}
		return true
	})
}

func appendElement(elements []byte, element string) []byte {
	if len(elements) > 0 {
		elements = append(elements, ',')
	}
	return append(elements, element...)
}

// text adds a text, which is a string or, from some servers, a list of parts.
func (w *walk) text(k kind, value gjson.Result) {
	if value.IsArray() {
		value.ForEach(func(_, part gjson.Result) bool {
			if text := part.Get("text"); text.Type == gjson.String {
				w.text(k, text)
			}
			return true
		})
		return
	}
	if value.Type != gjson.String || value.Str == "" {
		return
	}
	if w.now != k {
		w.end()
		w.now = k
		w.parts.open(k, "", "")
	}
	w.parts.add(inside(value))
}

func (w *walk) callsOf(calls gjson.Result) error {
	var err error
	position := int64(0)
	calls.ForEach(func(_, element gjson.Result) bool {
		index := position
		if n := element.Get("index"); n.Type == gjson.Number {
			index = n.Int()
		}
		position++
		call := w.calls.Find(index, element)
		if call == nil {
			if w.calls.Count >= MaxCalls {
				err = ErrManyCalls
				return false
			}
			call = w.calls.Add(index, element)
			w.start(call)
		}
		err = w.addArguments(call, element.Get("function.arguments"))
		return err == nil
	})
	return err
}

// start opens a call. If the open call may continue, the new call waits, because the dialects cannot interleave
// calls.
func (w *walk) start(call *ToolCall) {
	if w.now == called && !w.call.nesting.complete {
		call.waiting = true
		w.waiting = append(w.waiting, call)
		return
	}
	w.end()
	w.open(call)
}

func (w *walk) open(call *ToolCall) {
	w.now, w.call, call.waiting = called, call, false
	w.parts.open(called, call.shown, call.name)
	if len(call.arguments) > 0 {
		w.parts.add(string(call.arguments))
	}
	w.waitingBytes -= len(call.arguments)
	call.arguments = nil
}

func (w *walk) addArguments(call *ToolCall, arguments gjson.Result) error {
	text := arguments.Str
	if arguments.IsObject() {
		text = arguments.Raw
	}
	if text == "" {
		return nil
	}
	call.nesting.add(text)
	switch {
	case call.waiting:
		w.waitingBytes += call.keep(arguments)
	case w.now != called || call != w.call:
		if strings.TrimSpace(text) != "" {
			return ErrInterleaved
		}
	case arguments.IsObject():
		w.parts.addObject(text)
	default:
		w.parts.add(inside(arguments))
	}
	for len(w.waiting) > 0 && w.call.nesting.complete {
		w.next()
	}
	return nil
}

// next closes the open call and opens the first waiting call.
func (w *walk) next() {
	w.parts.shut()
	call := w.waiting[0]
	w.waiting = w.waiting[1:]
	w.open(call)
}

func (w *walk) end() {
	for len(w.waiting) > 0 {
		w.next()
	}
	if w.now != none {
		w.parts.shut()
		w.now = none
	}
}

// first returns the choice with index 0 and ignores all others.
func first(completion gjson.Result) (choice gjson.Result) {
	completion.Get("choices").ForEach(func(_, value gjson.Result) bool {
		if value.Get("index").Int() == 0 {
			choice = value
			return false
		}
		return true
	})
	return choice
}
