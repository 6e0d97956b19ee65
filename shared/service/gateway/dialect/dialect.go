// Package dialect translates between chat completions and two other ways of
// talking to a model: Messages and Responses (docs/contract/dialects.md). A
// request becomes the chat that means the same; the completion, whole or chunk by
// chunk, becomes what callers of the dialect expect.
//
// What chat cannot carry is refused by its place in the request, never dropped.
// Texts are copied as they stand in JSON and not decoded.
package dialect

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/jsonedit"
)

// Call is what a translation has to know of its call.
type Call struct {
	// ID names the answer and all its parts.
	ID string
	// Model is the model's name as JSON, Created the time of the call in seconds
	// since 1970.
	Model   []byte
	Created int64
}

// chatOnly are the fields of chat that a dialect names otherwise or does not
// have: a request of the dialect has no use for them.
func chatOnly(name string) bool {
	switch name {
	case "messages", "prompt", "stop", "n", "best_of", "max_tokens", "max_completion_tokens", "stream_options",
		"response_format", "functions", "function_call", "logprobs", "audio", "modalities", "prediction",
		"reasoning_effort", "tools", "tool_choice":
		return true
	}
	return false
}

// Renamed is an error of the chat that a request became, in the words of its
// dialect.
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

// kind is what a piece of generated text is.
type kind int

const (
	none kind = iota
	thought
	said
	refused
	called
)

// parts receives the parts of a completion in their order: each is opened, gets
// its text, and is closed before the next one.
type parts interface {
	// open begins a part; id and name are those of a called function.
	open(k kind, id, name string)
	// add adds text, as JSON without its quotes.
	add(text string)
	// shut ends the part.
	shut()
}

// walk turns the deltas of a completion into parts.
type walk struct {
	parts parts
	now   kind
	// call is the call that is open, or the last one; calls is how many there were.
	call  openCall
	calls int64
	// before are the indexes and ids of the calls so far.
	before map[int64]bool
	ids    map[string]bool
	// finish is why the completion ended, and stop the sequence that ended it.
	finish, stop string
	// told reports whether the caller asked for the probabilities of tokens; logprobs
	// are those of the text that comes next, as elements of an array.
	told     bool
	logprobs []byte
}

// openCall is a call of a function as the server names it.
type openCall struct {
	index int64
	id    string
}

// maxCalls is how many calls of functions an answer may have. In both dialects each takes
// hundreds of times the bytes of an empty one.
const maxCalls = 1000

var errManyCalls = fmt.Errorf("it calls more than %d functions", maxCalls)

// errInterleaved is the error of a server that goes back to an earlier call.
var errInterleaved = interleaved{}

type interleaved struct{}

func (interleaved) Error() string { return "it writes the arguments of several calls in turn" }

// choice reads a choice of a chunk, or of a whole completion.
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
	if w.told && content.Str != "" {
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

// addLogprobs keeps the probabilities of tokens for the text that they are of.
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

// appendElement appends an element of an array, which is JSON.
func appendElement(elements []byte, element string) []byte {
	if len(elements) > 0 {
		elements = append(elements, ',')
	}
	return append(elements, element...)
}

// text adds a text, which is a string or, with some servers, parts with texts.
func (w *walk) text(k kind, value gjson.Result) {
	if value.IsArray() {
		value.ForEach(func(_, part gjson.Result) bool {
			w.text(k, part.Get("text"))
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

// callsOf adds calls of functions.
func (w *walk) callsOf(calls gjson.Result) error {
	var err error
	position := int64(0)
	calls.ForEach(func(_, call gjson.Result) bool {
		index := position
		if n := call.Get("index"); n.Type == gjson.Number {
			index = n.Int()
		}
		position++
		arguments := call.Get("function.arguments")
		switch {
		case w.isNew(index, call) && w.calls >= maxCalls:
			err = errManyCalls
			return false
		case w.isNew(index, call):
			w.begin(index, call)
		case w.now != called || index != w.call.index:
			if arguments.Str != "" {
				err = errInterleaved
				return false
			}
			return true
		}
		if arguments.Type == gjson.String && arguments.Str != "" {
			w.parts.add(inside(arguments))
		} else if arguments.IsObject() {
			w.parts.add(inside(gjson.Parse(string(jsonedit.Quote(arguments.Raw)))))
		}
		return true
	})
	return err
}

// isNew reports whether a call is not one of those before. Some servers write all
// calls of a turn under one index; then another id beside a name begins another.
func (w *walk) isNew(index int64, call gjson.Result) bool {
	if !w.before[index] {
		return true
	}
	id := call.Get("id").Str
	return index == w.call.index && id != "" && id != w.call.id && call.Get("function.name").Str != ""
}

// begin opens a call. Clients tell calls apart by their ids: one that has been used
// already is left to the dialect to replace.
func (w *walk) begin(index int64, call gjson.Result) {
	w.end()
	if w.before == nil {
		w.before, w.ids = map[int64]bool{}, map[string]bool{}
	}
	id := strings.Clone(call.Get("id").Str)
	w.now, w.call = called, openCall{index, id}
	w.calls++
	w.before[index] = true
	shown := id
	if w.ids[id] {
		shown = ""
	}
	w.ids[id] = true
	w.parts.open(called, shown, call.Get("function.name").Str)
}

// end closes the part that is open.
func (w *walk) end() {
	if w.now != none {
		w.parts.shut()
		w.now = none
	}
}

// first returns the choice of a completion: there is one, and servers that send
// others are not listened to.
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
