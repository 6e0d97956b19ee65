package catalog

import (
	"maps"
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
	// Responses is POST /v1/responses.
	Responses Route = "responses"
	// Messages is POST /v1/messages, CountTokens POST /v1/messages/count_tokens.
	Messages    Route = "messages"
	CountTokens Route = "count_tokens"
	// Embeddings is POST /v1/embeddings, Rerank POST /v1/rerank and Score POST
	// /v1/score.
	Embeddings Route = "embeddings"
	Rerank     Route = "rerank"
	Score      Route = "score"
)

// routes are all routes with their paths below a base URL.
var routes = map[Route]string{
	Chat: "/chat/completions", Completions: "/completions",
	Responses: "/responses", Messages: "/messages", CountTokens: "/messages/count_tokens",
	Embeddings: "/embeddings", Rerank: "/rerank", Score: "/score",
}

// Routes returns all routes, in no order.
func Routes() []Route { return slices.Collect(maps.Keys(routes)) }

// Path is the path of the route below a base URL, such as "/chat/completions".
func (r Route) Path() string { return routes[r] }

// Generates reports whether the answers of the route are generated text.
func (r Route) Generates() bool {
	return r == Chat || r == Completions || r == Responses || r == Messages
}

// overChat are the routes that the gateway answers by chat, for a row whose
// upstreams do not serve them.
var overChat = []Route{Responses, Messages, CountTokens}

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
	// Routes are those that the upstreams serve themselves.
	Routes []Route
	// ContextLength is how many tokens prompt and completion may have together;
	// MaxOutputLength is how many of them may be generated, 0 for a row that
	// generates no text.
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
	// Price is nil where the operator set none.
	Price    *TokenPrice
	Timeouts Timeouts
	// Affinity reports whether calls that share a beginning go to the same
	// upstream, which has it in its cache; otherwise each goes to any of them.
	Affinity bool
	// Fallbacks are the ids of rows that calls go to when all upstreams are out or
	// full, or a prompt is too long for this row, in their order.
	Fallbacks []string
	// Queue lets calls wait while all upstreams are full.
	Queue Queue
	// Upstreams are the model servers: none for a placeholder, otherwise at
	// least one.
	Upstreams []Upstream
}

// Serves reports whether the model answers on the route: because its upstreams
// do, or by chat.
func (m *Inference) Serves(route Route) bool {
	return !m.Placeholder && (m.Speaks(route) || slices.Contains(m.Routes, Chat) && slices.Contains(overChat, route) ||
		route == CountTokens && slices.Contains(m.Routes, Messages))
}

// Speaks reports whether the model's upstreams serve the route themselves.
func (m *Inference) Speaks(route Route) bool { return slices.Contains(m.Routes, route) }

// Capabilities are the routes on which callers may use the model: those of its
// upstreams, then those by chat. The counting of tokens is part of Messages.
func (m *Inference) Capabilities() []Route {
	all := slices.DeleteFunc(slices.Clone(m.Routes), func(r Route) bool { return r == CountTokens })
	for _, route := range overChat {
		if route != CountTokens && m.Serves(route) && !slices.Contains(all, route) {
			all = append(all, route)
		}
	}
	return all
}

// Takes reports whether the row allows callers a field of this name, in
// addition to those that clients commonly send.
func (m *Inference) Takes(field string) bool { return m.AnyField || slices.Contains(m.Fields, field) }

// Queue bounds the calls that wait for an upstream: how many, and each for how
// long. The zero value lets none wait.
type Queue struct {
	Calls int
	Wait  time.Duration
}

// Timeouts bounds the waits for an upstream; 0 leaves a bound to the gateway.
type Timeouts struct {
	// Connect bounds connecting, FirstByte the time from the request to the
	// first byte of the answer, and Idle the silence between bytes after that.
	Connect, FirstByte, Idle time.Duration
}

// Discovery says how model servers are found.
type Discovery string

const (
	// Fixed upstreams are one server, at their URL.
	Fixed Discovery = ""
	// ByAddress upstreams are a server at each address that the host's name has in
	// DNS, ByService upstreams one for each SRV record of the name.
	ByAddress Discovery = "dns"
	ByService Discovery = "srv"
)

// Upstream is a model server, or several that one name in DNS stands for.
type Upstream struct {
	// Name distinguishes the upstreams of a model in metrics and logs.
	Name string
	// URL is the base URL of the routes, including "/v1" if the server has it,
	// without a final slash; or [Embedded].
	URL string
	// Discovery says what the host of URL is.
	Discovery Discovery
	// Model is the server's name for the model.
	Model string
	// Secret is the source of the server's key: "env:NAME", "file:PATH" or
	// "secretsmanager:ARN#FIELD"; empty if it needs none.
	Secret string
	// KeyHeader is the header field that carries the key as it is; empty for
	// Authorization, where it stands after "Bearer".
	KeyHeader string
	// Version is the anthropic-version that the server is told; empty for none.
	Version string
	// Weight is this upstream's share of the calls, relative to the sum of
	// weights.
	Weight int
	// Concurrency is how many calls may run at once; 0 means no limit.
	Concurrency int
}
