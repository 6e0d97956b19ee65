package gateway

import (
	"fmt"

	"cutroom/shared/model"
)

// MaxBody is the size of the greatest request that is read, in bytes. A greater
// one is answered with 413.
const MaxBody = 32 << 20

// Caller is what a request is held against: what exists, and how far the
// caller's credential reaches.
type Caller struct {
	// Find gives the row of a slug.
	Find func(slug string) (*model.Inference, bool)
	// Allows reports whether the caller may use the model; nil allows all.
	Allows func(slug string) bool
	// MaxTokens is the tier's cap on what one completion may be asked to
	// generate, in tokens; 0 is none.
	MaxTokens int
}

// Request is a checked request for a completion.
type Request struct {
	Route Route
	Model *model.Inference
	// Stream reports whether the answer is Server-Sent Events.
	Stream bool
	// IncludeUsage reports whether the caller asked for the usage at the end of
	// the stream. The upstream is asked for it in any case.
	IncludeUsage bool
	// MaxTokens is how many tokens each choice may have, as the upstream is
	// told; 0 where it is told nothing.
	MaxTokens int
	// Choices is how many completions were asked for, at least 1.
	Choices int
}

// Route is a route of the gateway.
type Route = model.Route

// Parse checks a request by the rules of interface.md's two gateway sections
// and of decisions.md, "Inference gateway". The first thing that is wrong is
// the error: the model's existence (404), the caller's scope (403), then the
// fields in the order of the interface (400). The request keeps body, which
// must not be changed afterwards.
func Parse(route Route, body []byte, caller Caller) (*Request, *Error) {
	return nil, modelNotFound("There is no model.")
}

// Body gives the request as an upstream gets it: the caller's bytes, changed
// only where the rules ask for it, and with the upstream's name of the model.
func (r *Request) Body(upstreamModel string) []byte { return nil }

// PromptTexts calls yield with each piece of the prompt's text, unescaped: the
// contents and roles of a chat, or the prompts of a completion. Prompts of
// token ids are counted, not yielded: their number is the result.
func (r *Request) PromptTexts(yield func(text []byte)) (tokenIDs int) { return 0 }

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }
