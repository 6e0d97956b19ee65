package catalog

import (
	"slices"
	"time"
)

// Route is a route of the inference gateway that a model may serve, named like
// the capability in docs/contract/gateway.md#model-list.
type Route string

const (
	// Chat is POST /v1/chat/completions.
	Chat Route = "chat"
	// Completions is POST /v1/completions.
	Completions Route = "completions"
)

// ReasoningEffort is how a model's upstreams take the field reasoning_effort.
type ReasoningEffort string

const (
	// EffortTopLevel models take the field where the caller puts it.
	EffortTopLevel ReasoningEffort = ""
	// EffortTemplate models are the reasoning family of
	// docs/contract/gateway.md#reasoning, rules 1 to 4: they take the field in
	// chat_template_kwargs.
	EffortTemplate ReasoningEffort = "template"
)

// The bounds of a row that does not set MaxChoices or MaxPrompts.
const (
	DefaultMaxChoices = 16
	DefaultMaxPrompts = 64
)

// DefaultMaxTokensField is the field that carries the maximum number of tokens
// to an upstream, unless its row names another.
const DefaultMaxTokensField = "max_tokens"

// Embedded is the base URL of the model server inside this process.
const Embedded = "embedded:"

// Inference is one row of the catalog's inference side: a model that answers
// completions on upstream model servers.
type Inference struct {
	// ID is the slug that callers send and get in answers.
	ID          string
	Description string
	// Placeholder rows reserve the name of a model that does not exist: they
	// are not listed, and calls to them are answered with model_not_found.
	Placeholder bool
	Routes      []Route
	// ContextLength is how many tokens prompt and completion may have together;
	// MaxOutputLength is how many of them may be generated.
	ContextLength, MaxOutputLength int
	// DefaultMaxTokens is forwarded if the caller sets no limit; 0 means that
	// nothing is.
	DefaultMaxTokens int
	// MaxTokensField names the field that carries the limit to the upstream.
	MaxTokensField string
	Effort         ReasoningEffort
	// TemplateKwargs reports whether the upstreams take chat_template_kwargs.
	TemplateKwargs bool
	// StreamOptions reports whether the upstreams take stream_options, which
	// asks for the usage at the end of a stream.
	StreamOptions bool
	// MaxChoices bounds n and best_of, MaxPrompts the prompts of one text
	// completion.
	MaxChoices, MaxPrompts int
	// AnyField reports whether every field of a request is forwarded; otherwise
	// only Fields and those that clients commonly send are.
	AnyField bool
	Fields   []string
	Price    Price
	Timeouts Timeouts
	// Upstreams are the model servers: none for a placeholder, otherwise at
	// least one.
	Upstreams []Upstream
}

// Serves reports whether the model answers on the route.
func (m *Inference) Serves(route Route) bool {
	return !m.Placeholder && slices.Contains(m.Routes, route)
}

// Takes reports whether the row allows callers a field of this name, in
// addition to those that clients commonly send.
func (m *Inference) Takes(field string) bool { return m.AnyField || slices.Contains(m.Fields, field) }

// Price is the price of tokens, in US dollars per million.
type Price struct{ Input, Output float64 }

// Timeouts bounds the waits for an upstream; 0 leaves a bound to the gateway.
type Timeouts struct {
	// Connect bounds connecting, FirstByte the time from the request to the
	// first byte of the answer, and Idle the silence between bytes after that.
	Connect, FirstByte, Idle time.Duration
}

// Upstream is a model server.
type Upstream struct {
	// Name distinguishes the upstreams of a model in metrics and logs.
	Name string
	// URL is the base URL of the routes, including "/v1" if the server has it,
	// without a final slash; or [Embedded].
	URL string
	// Model is the server's name for the model.
	Model string
	// Secret is the source of the server's key: "env:NAME", "file:PATH" or
	// "secretsmanager:ARN#FIELD"; empty if it needs none.
	Secret string
	// Weight is this upstream's share of the calls, relative to the sum of
	// weights.
	Weight int
	// Concurrency is how many calls may run at once; 0 means no limit.
	Concurrency int
}
