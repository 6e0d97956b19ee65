package catalog

import (
	"maps"
	"slices"
	"time"
)

// Route is a route of the inference gateway, named like the capability in
// docs/contract/gateway.md#model-list.
type Route string

const (
	Chat        Route = "chat"
	Completions Route = "completions"
	Responses   Route = "responses"
	// Messages is POST /v1/messages, CountTokens POST /v1/messages/count_tokens.
	Messages    Route = "messages"
	CountTokens Route = "count_tokens"
	// Embeddings is POST /v1/embeddings, Rerank POST /v1/rerank and Score POST /v1/score.
	Embeddings Route = "embeddings"
	Rerank     Route = "rerank"
	Score      Route = "score"
)

// routes has the path of each route below a base URL.
var routes = map[Route]string{
	Chat: "/chat/completions", Completions: "/completions",
	Responses: "/responses", Messages: "/messages", CountTokens: "/messages/count_tokens",
	Embeddings: "/embeddings", Rerank: "/rerank", Score: "/score",
}

func Routes() []Route { return slices.Collect(maps.Keys(routes)) }

// Path returns the path of the route below a base URL, such as "/chat/completions".
func (r Route) Path() string { return routes[r] }

// Generates reports whether the answers of the route are generated text.
func (r Route) Generates() bool {
	return r == Chat || r == Completions || r == Responses || r == Messages
}

// overChat are the routes that the gateway translates to chat if the upstreams do not serve them.
var overChat = []Route{Responses, Messages, CountTokens}

// ReasoningEffort is how a model's upstreams take the field reasoning_effort.
type ReasoningEffort string

const (
	// EffortTopLevel models take the field where the caller puts it.
	EffortTopLevel ReasoningEffort = ""
	// EffortTemplate models are the reasoning family of docs/contract/gateway.md#reasoning, rules 1 to 4:
	// they take the field in chat_template_kwargs.
	EffortTemplate ReasoningEffort = "template"
)

// The limits of a row without MaxChoices or MaxPrompts.
const (
	DefaultMaxChoices = 16
	DefaultMaxPrompts = 64
)

// DefaultMaxTokensField is the field with the maximum number of tokens, unless a row names another.
const DefaultMaxTokensField = "max_tokens"

// Embedded is the base URL of the model server inside this process.
const Embedded = "embedded:"

// Inference is one inference row of the catalog: a model on upstream model servers.
type Inference struct {
	// ID is the slug in requests and answers.
	ID          string
	Description string
	// Placeholder rows reserve the name of a model that does not exist. They are not listed, and
	// calls to them get model_not_found.
	Placeholder bool
	// Routes are the routes that the upstreams serve themselves.
	Routes []Route
	// ContextLength limits the tokens of prompt and completion together. MaxOutputLength limits the
	// completion; it is 0 for a row that generates no text.
	ContextLength, MaxOutputLength int
	// DefaultMaxTokens is forwarded if the caller sets no limit, unless it is 0.
	DefaultMaxTokens int
	// MaxTokensField is the upstream's field for the limit.
	MaxTokensField string
	Effort         ReasoningEffort
	// TemplateKwargs reports whether the upstreams take chat_template_kwargs.
	TemplateKwargs bool
	// StreamOptions reports whether the upstreams take stream_options, which
	// asks for the usage at the end of a stream.
	StreamOptions bool
	// MaxChoices limits n and best_of, MaxPrompts the prompts of one text completion.
	MaxChoices, MaxPrompts int
	// AnyField forwards every field of a request. Otherwise only Fields and common fields are forwarded.
	AnyField bool
	Fields   []string
	// Price is nil if the operator set no price.
	Price    *TokenPrice
	Timeouts Timeouts
	// Affinity sends calls with the same beginning to the same upstream, which has it in its cache.
	Affinity bool
	// Fallbacks are the ids of rows, in order, that receive calls if all upstreams are down or
	// full, or a prompt is too long for this row.
	Fallbacks []string
	Queue     Queue
	// Upstreams are the model servers, at least one except for a placeholder.
	Upstreams []Upstream
}

// Serves reports whether callers may use the route, natively or translated to chat.
func (m *Inference) Serves(route Route) bool {
	return !m.Placeholder && (m.Speaks(route) || slices.Contains(m.Routes, Chat) && slices.Contains(overChat, route) ||
		route == CountTokens && slices.Contains(m.Routes, Messages))
}

// Speaks reports whether the upstreams serve the route natively.
func (m *Inference) Speaks(route Route) bool { return slices.Contains(m.Routes, route) }

// Capabilities are the routes of the model: native ones first, then those translated to chat.
// Counting tokens is part of Messages.
func (m *Inference) Capabilities() []Route {
	all := slices.DeleteFunc(slices.Clone(m.Routes), func(r Route) bool { return r == CountTokens })
	for _, route := range overChat {
		if route != CountTokens && m.Serves(route) && !slices.Contains(all, route) {
			all = append(all, route)
		}
	}
	return all
}

// Takes reports whether the row allows a field in addition to the common ones.
func (m *Inference) Takes(field string) bool { return m.AnyField || slices.Contains(m.Fields, field) }

// Queue limits how many calls wait for an upstream, and how long each waits. The zero value lets no
// call wait.
type Queue struct {
	Calls int
	Wait  time.Duration
}

// Timeouts limits the waits for an upstream. 0 means the gateway's default.
type Timeouts struct {
	// Connect limits connecting, FirstByte the time from the request to the first byte of the
	// answer, and Idle the silence between later bytes.
	Connect, FirstByte, Idle time.Duration
}

type Discovery string

const (
	// Fixed upstreams are one server, at their URL.
	Fixed Discovery = ""
	// ByAddress upstreams are a server at each DNS address of the host. ByService upstreams are one
	// for each SRV record.
	ByAddress Discovery = "dns"
	ByService Discovery = "srv"
)

// Upstream is a model server, or several behind one DNS name.
type Upstream struct {
	// Name distinguishes the upstreams of a model in metrics and logs.
	Name string
	// URL is the base URL of the routes, including "/v1" if the server has it,
	// without a final slash; or [Embedded].
	URL       string
	Discovery Discovery
	// Model is the server's name for the model.
	Model string
	// Secret is the source of the server's key: "env:NAME", "file:PATH" or
	// "secretsmanager:ARN#FIELD". It is empty if the server needs no key.
	Secret string
	// KeyHeader is the header for the plain key. Empty means "Authorization: Bearer".
	KeyHeader string
	// Version is the anthropic-version header, or empty.
	Version string
	// Weight is this upstream's part of the calls, relative to the sum of weights.
	Weight int
	// Concurrency is how many calls may run at once; 0 means no limit.
	Concurrency int
}
