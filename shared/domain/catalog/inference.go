package catalog

import (
	"slices"
	"time"
)

// Route is a route of the inference gateway that a model may serve. Its text is
// the name that docs/contract/gateway.md#model-list gives the capability.
type Route string

const (
	// Chat is POST /v1/chat/completions.
	Chat Route = "chat"
	// Completions is POST /v1/completions.
	Completions Route = "completions"
)

// ReasoningEffort says how a model's upstreams take the field reasoning_effort.
type ReasoningEffort string

const (
	// EffortTopLevel models take the field where the caller puts it.
	EffortTopLevel ReasoningEffort = ""
	// EffortTemplate models are the reasoning family of
	// docs/contract/gateway.md#reasoning, rules 1 to 4: they take it in
	// chat_template_kwargs.
	EffortTemplate ReasoningEffort = "template"
)

// What a row bounds that says nothing itself: see MaxChoices and MaxPrompts.
const (
	DefaultMaxChoices = 16
	DefaultMaxPrompts = 64
)

// DefaultMaxTokensField is the field that carries the greatest number of tokens
// to generate to an upstream whose row names no other.
const DefaultMaxTokensField = "max_tokens"

// Embedded is the base URL of the model server inside this process.
const Embedded = "embedded:"

// Inference is one row of the catalog's inference side: a model that answers
// completions on upstream model servers.
type Inference struct {
	// ID is the slug that callers write, and what they are answered with.
	ID          string
	Description string
	// Placeholder rows hold a name for a model that is not there: they are not
	// listed, and calls of them are answered with model_not_found.
	Placeholder bool
	Routes      []Route
	// ContextLength is how many tokens prompt and completion may have together;
	// MaxOutputLength is how many of them may be generated.
	ContextLength, MaxOutputLength int
	// DefaultMaxTokens is forwarded where the caller says nothing; 0 says
	// nothing either.
	DefaultMaxTokens int
	// MaxTokensField names the field that carries the limit to the upstream.
	MaxTokensField string
	Effort         ReasoningEffort
	// TemplateKwargs reports whether the upstreams take chat_template_kwargs.
	TemplateKwargs bool
	// StreamOptions reports whether the upstreams take stream_options, by which
	// a stream is asked to end with its usage.
	StreamOptions bool
	// MaxChoices bounds n and best_of, MaxPrompts the prompts of one text
	// completion.
	MaxChoices, MaxPrompts int
	// AnyField reports whether every field of a request is forwarded; else it is
	// those that clients commonly send, and Fields.
	AnyField bool
	Fields   []string
	Price    Price
	Timeouts Timeouts
	// Upstreams are the model servers; none for a placeholder, else at least one.
	Upstreams []Upstream
}

// Serves reports whether the model answers on the route.
func (m *Inference) Serves(route Route) bool {
	return !m.Placeholder && slices.Contains(m.Routes, route)
}

// Takes reports whether the row itself allows callers a field of this name,
// beside those that clients commonly send.
func (m *Inference) Takes(field string) bool { return m.AnyField || slices.Contains(m.Fields, field) }

// Price is what tokens cost, in US dollars per million.
type Price struct{ Input, Output float64 }

// Timeouts bounds the waiting for an upstream; 0 leaves it to the gateway.
type Timeouts struct {
	// Connect bounds the making of a connection, FirstByte the time from the
	// request to the first byte of the answer, Idle the silence between bytes
	// after that.
	Connect, FirstByte, Idle time.Duration
}

// Upstream is a model server.
type Upstream struct {
	// Name tells the upstreams of a model apart, in metrics and logs.
	Name string
	// URL is the base URL below which the routes of the interface lie, "/v1"
	// included where the server has it, without a final slash; or [Embedded].
	URL string
	// Model is what the server calls the model.
	Model string
	// Secret says where the server's key comes from, as "env:NAME",
	// "file:PATH" or "secretsmanager:ARN#FIELD"; empty where it asks for none.
	Secret string
	// Weight is this upstream's share of the calls, against the sum of weights.
	Weight int
	// Concurrency is how many calls may run at once; 0 is no limit.
	Concurrency int
}
