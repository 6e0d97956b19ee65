// Package gateway serves text inference over HTTP (docs/contract/gateway.md). It checks and edits a
// request in place (package request), sends it to one of the model's upstreams (package upstream),
// and forwards the response as it arrives. It meters the usage even if the caller disconnects.
package gateway

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/response"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/upstream"
)

const DefaultKeepAlive = 10 * time.Second

// Config configures the gateway. Fields are required unless their comment says otherwise.
type Config struct {
	// Catalog returns the current catalog. An upstream keeps its state as long as it stays in the catalog.
	Catalog       func() *catalog.Catalog
	Authenticator *credential.Authenticator
	// Batches serves files and batches. If nil, their paths do not exist.
	Batches *Batches
	// Responses keeps responses of the Responses dialect. If nil, none are kept.
	Responses response.Store
	// Tracer records a span for every upstream call. nil disables tracing.
	Tracer trace.Tracer
	// Observer may be nil. Metrics serves GET /metrics. If Metrics is nil, the route does not exist.
	Observer Observer
	Metrics  http.Handler
	Origins  httpserver.Origins
	// If a stream is silent for KeepAlive before its first chunk, comments are sent to keep the connection alive. 0
	// means DefaultKeepAlive.
	KeepAlive time.Duration
	// LongestSilence is how long after its start a call that is not streamed may be without a response, because API
	// Gateway closes silent connections. 0 means no limit other than the model's timeouts.
	LongestSilence time.Duration
	// Trailers means that the transport supports trailers, which streams use to report their tokens.
	Trailers bool
	// Ready is called by /healthz. It returns why the gateway is not ready, or nil. If the function
	// is nil, the gateway is always ready. The message of a fault.Unavailable is public.
	Ready func(context.Context) error
	// Now returns the time for measuring durations. Date returns the time that determines the day of usage. If Date
	// is nil, Now is used.
	Now, Date func() time.Time
	Logger    *slog.Logger
	// BodyMemory limits the memory for all request bodies and large responses, in bytes. An account
	// may use half of it. BodyWait limits how long a request waits for memory before it is rejected
	// with a Retry-After. 0 means DefaultBodyMemory and DefaultBodyWait.
	BodyMemory int64
	BodyWait   time.Duration

	Spending
	Upstreams
}

type Spending struct {
	// Limiter counts requests and tokens against the tiers' rates. nil means no limits.
	Limiter Limiter
	Meter   Meter
	// Budgets limits the spending of accounts and keys. nil means no budgets.
	Budgets Budgets
	// Usage returns the metered usage for GET /v1/usage.
	Usage     Totals
	Tokenizer Tokenizer
}

// Upstreams configures how the gateway finds and chooses model servers.
type Upstreams struct {
	Secrets upstream.Secrets
	// Embedded is the model server for the base URL "embedded:", or nil.
	Embedded http.Handler
	Random   func() float64
	// Resolver looks up the names of upstreams. nil means the system's resolver.
	Resolver upstream.Resolver
}

type Limiter interface {
	Take(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error)
	// Charge counts n units that have already been used, even if they exceed the rate.
	Charge(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error)
}

type Budgets interface {
	// Find returns the budgets that apply to a key's calls, or nil.
	Find(ctx context.Context, account, key string) ([]budget.Budget, error)
	// Reserve reserves the maximum usage of a call.
	//
	// Errors: fault.Exhausted if too little of a budget is left.
	Reserve(ctx context.Context, found []budget.Budget, most budget.Amounts) (*budget.Reservation, error)
}

type Totals interface {
	// See usage.Store.
	Totals(ctx context.Context, account string, first, last usage.Day, by usage.Columns) ([]usage.Total, error)
}

type Gateway struct {
	config               Config
	pools                *upstream.Pools
	bodies               *bodyMemory
	listTurns, slowReads *ratelimit.Turns
	stalls               stalls
	mux                  *http.ServeMux
	// exact has the handlers of the paths without parameters, because the mux takes longer to find them.
	exact   map[string]http.HandlerFunc
	started time.Time
}

type Group func(*Gateway)

// New returns a gateway with the groups' routes. It does not import any group itself, so that
// programs link only the groups they use. Call Close when done.
func New(c Config, groups ...Group) *Gateway {
	if c.KeepAlive == 0 {
		c.KeepAlive = DefaultKeepAlive
	}
	if c.Observer == nil {
		c.Observer = nopObserver{}
	}
	if c.Date == nil {
		c.Date = c.Now
	}
	g := &Gateway{
		config: c, mux: http.NewServeMux(), exact: map[string]http.HandlerFunc{}, started: c.Now(),
		listTurns: ratelimit.NewListTurns(), slowReads: ratelimit.NewSlowReads(),
	}
	g.bodies = newBodyMemory(c.BodyMemory, c.BodyWait)
	g.pools = upstream.New(upstream.Config{
		Catalog: c.Catalog, Secrets: c.Secrets, Embedded: c.Embedded, Now: c.Now, Random: c.Random, Resolver: c.Resolver,
		Logger: c.Logger,
	})
	for _, group := range groups {
		group(g)
	}
	g.route("/{$}", http.MethodGet, func(w http.ResponseWriter, _ *http.Request) error {
		writeJSON(w, http.StatusOK, []byte(rootBody))
		return nil
	})
	g.route("/healthz", http.MethodGet, g.health)
	g.route("/health", http.MethodGet, g.health)
	if c.Metrics != nil {
		g.route("/metrics", http.MethodGet, func(w http.ResponseWriter, r *http.Request) error {
			c.Metrics.ServeHTTP(w, r)
			return nil
		})
	}
	g.mux.HandleFunc("/", NotFound)
	return g
}

// Models registers the routes for inference, the model list, and usage.
func Models(g *Gateway) {
	g.route("/v1/chat/completions", http.MethodPost, g.authenticated(credential.InferenceRoutes, g.completion(catalog.Chat)))
	g.route("/v1/completions", http.MethodPost, g.authenticated(credential.InferenceRoutes, g.completion(catalog.Completions)))
	for _, route := range []catalog.Route{
		catalog.Responses, catalog.Messages, catalog.CountTokens, catalog.Embeddings, catalog.Rerank, catalog.Score,
		catalog.Transcriptions, catalog.Speech,
	} {
		g.route("/v1"+route.Path(), http.MethodPost, g.authenticated(credential.InferenceRoutes, g.completion(route)))
	}
	if g.config.Responses != nil {
		handle := g.authenticated(credential.InferenceRoutes, g.inTurn(g.keptResponse))
		g.routes("/v1/responses/{response_id}", map[string]handler{http.MethodGet: handle, http.MethodDelete: handle})
		g.route("/v1/responses/{response_id}/input_items", http.MethodGet, handle)
	}
	// Cohere's clients use these paths.
	for _, path := range []string{"/v2/rerank", "/rerank"} {
		g.route(path, http.MethodPost, g.authenticated(credential.InferenceRoutes, g.completion(catalog.Rerank)))
	}
	g.route("/v1/models", http.MethodGet, g.authenticated(credential.InferenceRoutes, g.inTurn(g.listModels)))
	g.route("/v1/models/{id...}", http.MethodGet, g.authenticated(credential.InferenceRoutes, g.getModel))
	g.route("/v1/usage", http.MethodGet, g.keyOnly(credential.UsageRoutes, g.inTurn(g.getUsage)))
}

// Serve adds a route of another service, which checks its own callers. It must not be called after the first request.
func (g *Gateway) Serve(pattern string, handler http.Handler) { g.mux.Handle(pattern, handler) }

// rootBody is the response to GET /, with relative links. It is documented together with the media service.
const rootBody = `{"service":"Cutroom inference gateway","models":"./v1/models","health":"./healthz"}`

// Drain makes all current and future waits for an upstream fail. Calls that have an upstream continue. A server must
// call Drain first when it shuts down.
func (g *Gateway) Drain() { g.pools.Drain() }

// Close closes idle connections and stops the embedded model server. It must be called after all calls have ended.
func (g *Gateway) Close() { g.pools.Close() }

func (g *Gateway) Health() []upstream.Health     { return g.pools.Health() }
func (g *Gateway) Queues() []upstream.QueueState { return g.pools.Queues() }

var exposedHeaders = []string{strings.Join([]string{
	"X-Request-Id", "Request-Id", "X-Tokens-Used", costHeader, servedHeader, "Retry-After", "Allow", "WWW-Authenticate",
	"X-RateLimit-Limit-Requests", "X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests",
	"X-RateLimit-Limit-Tokens", "X-RateLimit-Remaining-Tokens", "X-RateLimit-Reset-Tokens",
}, ", ")}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.config.Origins.Allow(w.Header(), r, exposedHeaders)
	if isMessages(r) {
		w.Header().Set("Request-Id", httpserver.RequestID(r.Context())) // Anthropic's libraries read this name
	}
	if handle := g.exact[r.URL.Path]; handle != nil {
		r.Pattern = r.URL.Path
		handle(w, r)
		return
	}
	// The mux would redirect an unclean path, but all paths of this service are clean.
	if clean := path.Clean(r.URL.Path); !strings.HasPrefix(r.URL.Path, "/") || r.URL.Path != clean {
		NotFound(w, r)
		return
	}
	g.mux.ServeHTTP(w, r)
}

type handler func(http.ResponseWriter, *http.Request) error

func (g *Gateway) route(pattern, method string, handle handler) {
	g.routes(pattern, map[string]handler{method: handle})
}

// routes registers a path's handlers by method. GET includes HEAD.
func (g *Gateway) routes(pattern string, by map[string]handler) {
	if get, ok := by[http.MethodGet]; ok {
		by[http.MethodHead] = get
	}
	methods := slices.Sorted(maps.Keys(by))
	allow := strings.Join(methods, ", ")
	serve := func(w http.ResponseWriter, r *http.Request) {
		if httpserver.IsPreflight(r) {
			httpserver.AnswerPreflight(w, r, allow)
			return
		}
		handle, ok := by[r.Method]
		if !ok {
			w.Header().Set("Allow", allow)
			g.fail(w, r, wrongMethod(w.Header(), r))
			return
		}
		if err := handle(w, r); err != nil {
			g.fail(w, r, err)
		}
	}
	if !strings.Contains(pattern, "{") {
		g.exact[pattern] = serve
	}
	g.mux.HandleFunc(pattern, serve)
}

// wrongMethod returns the error for a method that a path does not support. Clients that try a WebSocket first fall
// back to HTTP immediately if the status is 426, but retry for seconds after other errors.
func wrongMethod(header http.Header, r *http.Request) *apierror.Error {
	e := &apierror.Error{
		Status: http.StatusMethodNotAllowed, Type: apierror.InvalidRequest, Message: "This path does not support the method.",
	}
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		header.Set("Connection", "Upgrade")
		header.Set("Upgrade", "HTTP/1.1")
		e.Status, e.Message = http.StatusUpgradeRequired, "This path does not support WebSockets. Send a POST over HTTP/1.1 instead."
	}
	return e
}

func NotFound(w http.ResponseWriter, r *http.Request) {
	e := &apierror.Error{Status: http.StatusNotFound, Type: apierror.InvalidRequest, Message: "This path does not exist."}
	writeJSON(w, e.Status, errorJSON(r, e))
}

// authenticated checks the caller, the token's origin (docs/contract/auth.md#scope), and the routes
// that the key allows.
func (g *Gateway) authenticated(
	group credential.RouteGroup, handle func(http.ResponseWriter, *http.Request, credential.Principal) error,
) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		secret, ok := bearer(httpserver.Field(r.Header, "Authorization"))
		if !ok && (isMessages(r) || r.URL.Path == "/v1/models" || strings.HasPrefix(r.URL.Path, "/v1/models/")) {
			secret = strings.TrimSpace(r.Header.Get("X-Api-Key"))
			ok = secret != ""
		}
		if !ok {
			return fault.New(fault.Unauthorized, "An API key is required in the Authorization header, after \"Bearer\".")
		}
		who, err := g.config.Authenticator.Authenticate(r.Context(), secret)
		if err != nil {
			return err
		}
		httpserver.SetAccount(r.Context(), who.Account())
		if scope := who.Scope(); len(scope.Origins) > 0 && !scope.AllowsOrigin(httpserver.Field(r.Header, "Origin")) {
			return credential.ErrOriginNotAllowed
		}
		if err := who.CheckRoutes(group); err != nil {
			return &apierror.Error{
				Status: http.StatusForbidden, Type: apierror.Permission, Code: apierror.RouteNotAllowed, Message: err.Error(),
			}
		}
		return handle(w, r, who)
	}
}

// bearer returns the secret from an Authorization field (RFC 6750, section 2.1).
func bearer(field string) (secret string, ok bool) {
	scheme, secret, ok := strings.Cut(field, " ")
	secret = strings.TrimSpace(secret)
	return secret, ok && secret != "" && (scheme == "Bearer" || strings.EqualFold(scheme, "Bearer"))
}

func (g *Gateway) health(w http.ResponseWriter, r *http.Request) error {
	if g.config.Ready != nil {
		if err := g.config.Ready(r.Context()); err != nil {
			if fault.Is(err, fault.Unavailable) {
				return err // the message is meant for clients
			}
			return fault.Wrap(err, fault.Unavailable, "The gateway is not accepting requests at the moment.")
		}
	}
	writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

type nopObserver struct{}

func (nopObserver) Completed(Completion) {}
func (nopObserver) Attempted(Attempt)    {}
