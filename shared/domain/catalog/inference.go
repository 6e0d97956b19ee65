package catalog

import (
	"maps"
	"slices"
	"time"
)

// Route is a route of the inference gateway. It is named after the capability in
// docs/contract/gateway.md#model-list.
type Route string

const (
	Chat        Route = "chat"
	Completions Route = "completions"
	Responses   Route = "responses"
	// Messages is POST /v1/messages. CountTokens is POST /v1/messages/count_tokens.
	Messages    Route = "messages"
	CountTokens Route = "count_tokens"
	// Embeddings is POST /v1/embeddings, Rerank is POST /v1/rerank, and Score is POST /v1/score.
	Embeddings Route = "embeddings"
	Rerank     Route = "rerank"
	Score      Route = "score"
)

// routes maps each route to its path relative to a base URL.
var routes = map[Route]string{
	Chat: "/chat/completions", Completions: "/completions",
	Responses: "/responses", Messages: "/messages", CountTokens: "/messages/count_tokens",
	Embeddings: "/embeddings", Rerank: "/rerank", Score: "/score",
}

func Routes() []Route { return slices.Collect(maps.Keys(routes)) }

// Path returns the path of the route relative to a base URL, such as "/chat/completions".
func (r Route) Path() string { return routes[r] }

// Generates reports whether the route generates text.
func (r Route) Generates() bool {
	return r == Chat || r == Completions || r == Responses || r == Messages
}

// overChat lists the routes that the gateway translates to chat if the upstreams do not support
// them.
var overChat = []Route{Responses, Messages, CountTokens}

// ReasoningEffort is the way in which a model's upstreams expect the field reasoning_effort.
type ReasoningEffort string

const (
	// EffortTopLevel models expect the field where the caller puts it.
	EffortTopLevel ReasoningEffort = ""
	// EffortTemplate models expect the field in chat_template_kwargs. They are the reasoning family
	// of docs/contract/gateway.md#reasoning, rules 1 to 4.
	EffortTemplate ReasoningEffort = "template"
)

// Defaults for rows that do not set MaxChoices or MaxPrompts.
const (
	DefaultMaxChoices = 16
	DefaultMaxPrompts = 64
)

// DefaultMaxTokensField is the field for the maximum number of tokens unless a row sets another.
const DefaultMaxTokensField = "max_tokens"

// Embedded is the base URL of the model server in this process.
const Embedded = "embedded:"

// Inference is one inference row of the catalog: a model on upstream model servers.
type Inference struct {
	// ID is the slug in requests and responses.
	ID          string
	Description string
	// Placeholder rows reserve the name of a model that does not exist. They are not listed, and
	// calls to them get model_not_found.
	Placeholder bool
	// Routes lists the routes that the upstreams support natively.
	Routes []Route
	// ContextLength is the maximum number of tokens in the prompt and completion together.
	// MaxOutputLength is the maximum for the completion. It is 0 for a row that generates no text.
	ContextLength, MaxOutputLength int
	// DefaultMaxTokens is sent if the caller sets no limit. 0 means that no limit is sent.
	DefaultMaxTokens int
	// MaxTokensField is the upstream's name of the limit field.
	MaxTokensField string
	Effort         ReasoningEffort
	// TemplateKwargs reports whether the upstreams accept chat_template_kwargs.
	TemplateKwargs bool
	// StreamOptions reports whether the upstreams accept stream_options, which requests the usage
	// at the end of a stream.
	StreamOptions bool
	// MaxChoices is the maximum of n and best_of. MaxPrompts is the maximum number of prompts in
	// one text completion.
	MaxChoices, MaxPrompts int
	// AnyField forwards every field of a request. Otherwise only Fields and common fields are
	// forwarded.
	AnyField bool
	Fields   []string
	// Price is nil if the operator set no price.
	Price    *TokenPrice
	Timeouts Timeouts
	// Affinity sends calls with the same beginning to the same upstream, which has the beginning in
	// its cache.
	Affinity bool
	// Fallbacks lists the ids of rows that receive calls, in this order, if all upstreams are down
	// or full, or the prompt is too long for this row.
	Fallbacks []string
	Queue     Queue
	// Upstreams lists the model servers. Only a placeholder lacks them.
	Upstreams []Upstream
}

// Serves reports whether callers may use the route, natively or translated to chat.
func (m *Inference) Serves(route Route) bool {
	return !m.Placeholder && (m.Speaks(route) || slices.Contains(m.Routes, Chat) && slices.Contains(overChat, route) ||
		route == CountTokens && slices.Contains(m.Routes, Messages))
}

// Speaks reports whether the upstreams support the route natively.
func (m *Inference) Speaks(route Route) bool { return slices.Contains(m.Routes, route) }

// Capabilities returns the routes of the model: native ones first, then those translated to chat.
// CountTokens is part of Messages.
func (m *Inference) Capabilities() []Route {
	all := slices.DeleteFunc(slices.Clone(m.Routes), func(r Route) bool { return r == CountTokens })
	for _, route := range overChat {
		if route != CountTokens && m.Serves(route) && !slices.Contains(all, route) {
			all = append(all, route)
		}
	}
	return all
}

// Takes reports whether a row accepts a field beyond the common ones.
func (m *Inference) Takes(field string) bool { return m.AnyField || slices.Contains(m.Fields, field) }

// Queue limits how many calls may wait for an upstream, and how long each may wait. With the zero
// value, calls do not wait.
type Queue struct {
	Calls int
	Wait  time.Duration
}

type Timeouts struct {
	// Connect is the timeout for connecting, FirstByte for the first byte of the response, and Idle
	// for the silence between later bytes. 0 means the gateway's default.
	Connect, FirstByte, Idle time.Duration
}

type Discovery string

const (
	// A Fixed upstream is a single server at its URL.
	Fixed Discovery = ""
	// ByAddress upstreams are one server per DNS address of the host. ByService upstreams are one
	// server per SRV record.
	ByAddress Discovery = "dns"
	ByService Discovery = "srv"
)

// Upstream is one model server, or several behind a DNS name.
type Upstream struct {
	// Name identifies the upstream in metrics and logs. It is unique within the model.
	Name string
	// URL is the base URL of the routes, with "/v1" if the server uses it and without a final
	// slash, or [Embedded].
	URL       string
	Discovery Discovery
	// Model is the server's name for the model.
	Model string
	// Secret is the source of the server's key: "env:NAME", "file:PATH" or
	// "secretsmanager:ARN#FIELD". It is empty if the server needs no key.
	Secret string
	// KeyHeader is the header for the plain key. Empty means "Authorization: Bearer".
	KeyHeader string
	// Version is the value of the anthropic-version header, or empty.
	Version string
	// Weight determines the fraction of calls, relative to the sum of all weights.
	Weight int
	// Concurrency is the maximum number of concurrent calls. 0 means no limit.
	Concurrency int
}
