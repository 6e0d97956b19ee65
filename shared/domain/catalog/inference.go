package catalog

import (
	"maps"
	"slices"
	"time"
)

// Route is a capability listed in docs/contract/gateway.md#model-list.
type Route string

const (
	Chat        Route = "chat"
	Completions Route = "completions"
	Responses   Route = "responses"
	// Messages is POST /v1/messages, and CountTokens is POST /v1/messages/count_tokens.
	Messages    Route = "messages"
	CountTokens Route = "count_tokens"
	Embeddings  Route = "embeddings"
	Rerank      Route = "rerank"
	Score       Route = "score"
	// A row has no other route than these two, because their usage is priced per second of audio or per character.
	Transcriptions Route = "transcriptions"
	Speech         Route = "speech"
)

var routes = map[Route]string{
	Chat: "/chat/completions", Completions: "/completions",
	Responses: "/responses", Messages: "/messages", CountTokens: "/messages/count_tokens",
	Embeddings: "/embeddings", Rerank: "/rerank", Score: "/score",
	Transcriptions: "/audio/transcriptions", Speech: "/audio/speech",
}

func Routes() []Route { return slices.Collect(maps.Keys(routes)) }

// Path returns the path relative to a base URL, such as "/chat/completions".
func (r Route) Path() string { return routes[r] }
func (r Route) Generates() bool {
	return r == Chat || r == Completions || r == Responses || r == Messages
}

func (r Route) IsAudio() bool { return r == Transcriptions || r == Speech }

// overChat lists the routes that the gateway translates to chat calls if the upstreams do not support them.
var overChat = []Route{Responses, Messages, CountTokens}

// ReasoningEffort says where a model's upstreams expect the field reasoning_effort.
type ReasoningEffort string

const (
	// EffortTopLevel models expect the field at the top level of the request, as callers send it.
	EffortTopLevel ReasoningEffort = ""
	// EffortTemplate models expect it in chat_template_kwargs (docs/contract/gateway.md#reasoning).
	EffortTemplate ReasoningEffort = "template"
)

// ReasoningField names the field of an assistant's message from which the upstreams read earlier reasoning. If it
// is empty, chats are forwarded unchanged, and translated requests have both fields.
type ReasoningField string

const (
	ReasoningOnly    ReasoningField = "reasoning"
	ReasoningContent ReasoningField = "reasoning_content"
	ReasoningBoth    ReasoningField = "both"
)

// These are the defaults for rows that do not set MaxChoices, MaxPrompts or MaxEvent.
const (
	DefaultMaxChoices = 16
	DefaultMaxPrompts = 64
	DefaultMaxEvent   = 32 << 20
)

// DefaultMaxTokensField is the default name of the field that limits the number of tokens.
const DefaultMaxTokensField = "max_tokens"

// Embedded is the base URL of this process's own model server.
const Embedded = "embedded:"

type Inference struct {
	// ID is the model name in requests and responses.
	ID          string
	Description string
	// Placeholder rows reserve the name of a model that does not exist yet. They are not listed,
	// and calls to them fail with model_not_found.
	Placeholder bool
	// Routes lists the routes that the upstreams support natively.
	Routes []Route
	// ContextLength limits prompt and completion tokens together. MaxOutputLength limits completion tokens and is 0
	// for a row that generates no text. For speech, ContextLength limits the characters, and 0 means no limit.
	ContextLength, MaxOutputLength int
	// DefaultMaxTokens is the limit to send if the caller sets no limit. 0 means that no limit is sent.
	DefaultMaxTokens int
	// MaxTokensField is the upstream's name for the field that limits tokens.
	MaxTokensField string
	Effort         ReasoningEffort
	Reasoning      ReasoningField
	// TemplateKwargs is true if the upstreams accept chat_template_kwargs.
	TemplateKwargs bool
	// StreamOptions is true if the upstreams accept stream_options, which requests the usage at the end of a stream.
	StreamOptions bool
	// MaxChoices limits n and best_of. MaxPrompts limits the prompts in one text completion.
	MaxChoices, MaxPrompts int
	// MaxEvent is the maximum size of an event in a stream, in bytes.
	MaxEvent int
	// AnyField means that every field of a request is forwarded. Otherwise only the common fields and the fields
	// listed in Fields are forwarded.
	AnyField bool
	Fields   []string
	// Price is nil if the operator set no price.
	Price    *TokenPrice
	Timeouts Timeouts
	// Affinity sends calls that begin with the same text to the same upstream, which has the text in its cache.
	Affinity bool
	// Fallbacks lists the ids of rows to try, in this order, if all upstreams are down or full, or
	// the prompt is too long.
	Fallbacks []string
	Queue     Queue
	// Upstreams lists the model servers. It is empty only for placeholders.
	Upstreams []Upstream
}

// Serves reports whether callers may use the route, either natively or translated to chat.
func (m *Inference) Serves(route Route) bool {
	return !m.Placeholder && (m.Speaks(route) || slices.Contains(m.Routes, Chat) && slices.Contains(overChat, route) ||
		route == CountTokens && slices.Contains(m.Routes, Messages))
}

// Speaks reports whether the upstreams support the route natively.
func (m *Inference) Speaks(route Route) bool { return slices.Contains(m.Routes, route) }

// Capabilities returns the native routes, followed by the routes translated to chat. CountTokens is part of Messages.
func (m *Inference) Capabilities() []Route {
	all := slices.DeleteFunc(slices.Clone(m.Routes), func(r Route) bool { return r == CountTokens })
	for _, route := range overChat {
		if route != CountTokens && m.Serves(route) && !slices.Contains(all, route) {
			all = append(all, route)
		}
	}
	return all
}

// Takes reports whether a row accepts a field other than the common fields.
func (m *Inference) Takes(field string) bool { return m.AnyField || slices.Contains(m.Fields, field) }

// Queue limits how many calls may wait for an upstream, and for how long. The zero value stands for a brief wait.
type Queue struct {
	Calls int
	Wait  time.Duration
}

type Timeouts struct {
	// Connect is the timeout for connecting. FirstByte is the timeout for the response's first byte, and Idle is the
	// timeout for each later pause. 0 means the gateway's default.
	Connect, FirstByte, Idle time.Duration
}

type Discovery string

const (
	Fixed Discovery = ""
	// ByAddress means one server per DNS address of the host. ByService means one server per SRV record.
	ByAddress Discovery = "dns"
	ByService Discovery = "srv"
)

// Upstream is a model server, or several behind one DNS name.
type Upstream struct {
	// Name identifies the upstream in metrics and logs. It is unique within a model.
	Name string
	// URL is the base URL of the routes, without a trailing slash, or [Embedded].
	URL       string
	Discovery Discovery
	// Model is the model's name on the server.
	Model string
	// Secret says where to find the server's key: "env:NAME", "file:PATH" or "secretsmanager:ARN#FIELD". Empty means
	// no key.
	Secret string
	// KeyHeader is the header that contains the key without a prefix. Empty means "Authorization: Bearer".
	KeyHeader string
	Version   string
	// Weight is relative to the sum of the upstreams' weights.
	Weight int
	// Concurrency limits the concurrent calls. 0 means no limit.
	Concurrency int
}
