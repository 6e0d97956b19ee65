// Package gateway is the text inference gateway over HTTP: chat and text
// completions in front of any number of model servers that speak the same
// interface. The contract is docs/contract/gateway.md.
//
// A request is checked and rewritten in place (package request), sent to one of
// the model's upstreams (package upstream), and the answer is passed on as it
// arrives. What it used is metered, whether or not the caller stays to the end.
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
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/upstream"
)

// DefaultKeepAlive is how long a stream is silent before its first chunk until
// a comment is sent to keep the connection alive, unless it is set.
const DefaultKeepAlive = 10 * time.Second

// Config is what the gateway is made of. Fields are required unless they say
// otherwise.
type Config struct {
	// Catalog returns the current catalog. A new one keeps the state of the
	// upstreams that the old one had too.
	Catalog       func() *catalog.Catalog
	Authenticator *credential.Authenticator
	// Batches serves files and batches; without it their paths do not exist.
	Batches *Batches
	// Tracer records a span for every call to an upstream, which continues the
	// trace; nil turns tracing off.
	Tracer trace.Tracer
	// Observer receives what happens, and may be nil. Metrics answers GET
	// /metrics; without it the route does not exist.
	Observer Observer
	Metrics  http.Handler
	// Origins are the origins that browsers may call from.
	Origins httpserver.Origins
	// KeepAlive is how long a stream is silent before its first chunk until a
	// comment keeps the connection alive; 0 means DefaultKeepAlive.
	KeepAlive time.Duration
	// Trailers reports whether the transport carries trailers, in which streams
	// report their tokens.
	Trailers bool
	// Ready returns why the gateway does not accept requests yet, for /healthz;
	// nil means that it always does. The message of a fault.Unavailable is
	// shown.
	Ready func(context.Context) error
	// Now measures: only its differences count. Date is the day that usage is
	// recorded for; nil means Now.
	Now, Date func() time.Time
	Logger    *slog.Logger
	// BodyMemory is how much memory the bodies of all requests and large answers
	// may hold together, in bytes; an account may hold half of it, and 0 means
	// DefaultBodyMemory. BodyWait is how long a request waits for memory before
	// it is refused with a Retry-After; 0 means DefaultBodyWait.
	BodyMemory int64
	BodyWait   time.Duration

	Spending
	Upstreams
}

// Spending is how calls are counted, limited and billed.
type Spending struct {
	// Limiter counts requests and tokens against the rates of tiers; nil means
	// no limits.
	Limiter Limiter
	Meter   Meter
	// Budgets keeps what accounts and keys may use up; nil means no budgets.
	Budgets Budgets
	// Usage returns what was metered, for GET /v1/usage.
	Usage     Totals
	Tokenizer Tokenizer
}

// Upstreams is how the gateway reaches and chooses model servers.
type Upstreams struct {
	// Secrets returns the keys of upstreams.
	Secrets upstream.Secrets
	// Embedded is the model server behind the base URL "embedded:"; nil means
	// that there is none.
	Embedded http.Handler
	// Random returns a number in [0, 1), to choose among upstreams.
	Random func() float64
	// Resolver looks up the names of upstreams; nil means the system's.
	Resolver upstream.Resolver
}

// Limiter counts what accounts use against the rates of their tiers.
type Limiter interface {
	// Take counts n under the name, if the rate allows them now.
	Take(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error)
	// Charge counts n that were used already.
	Charge(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error)
}

// Budgets keeps what accounts and keys may use up in a day or a month.
type Budgets interface {
	// Find returns the budgets that apply to the calls of a key, nil if there are none.
	Find(ctx context.Context, account, key string) ([]budget.Budget, error)
	// Reserve reserves the most that a call can use of such budgets.
	//
	// Errors: fault.Exhausted if one of them has too little left.
	Reserve(ctx context.Context, found []budget.Budget, most budget.Amounts) (*budget.Reservation, error)
}

// Totals reads what accounts have used.
type Totals interface {
	// Totals returns what an account used from the first day to the last, both
	// included, in the order of day, model and key.
	Totals(ctx context.Context, account string, first, last usage.Day) ([]usage.Total, error)
}

// Gateway answers the gateway's routes.
type Gateway struct {
	config  Config
	pools   *upstream.Pools
	bodies  *bodyMemory
	mux     *http.ServeMux
	started time.Time
}

// Group is a set of routes that are deployed together.
type Group func(*Gateway)

// New returns the gateway, with the groups' routes. It must not name any itself: a program
// links only the groups that it names, and is smaller for it. Close releases what it holds.
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
	g := &Gateway{config: c, mux: http.NewServeMux(), started: c.Now()}
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
	g.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { NotFound(w) })
	return g
}

// Models is the group of calls of models, their list, and what was used.
func Models(g *Gateway) {
	g.route("/v1/chat/completions", http.MethodPost, g.authenticated(credential.InferenceRoutes, g.completion(catalog.Chat)))
	g.route("/v1/completions", http.MethodPost, g.authenticated(credential.InferenceRoutes, g.completion(catalog.Completions)))
	for _, route := range []catalog.Route{
		catalog.Responses, catalog.Messages, catalog.CountTokens, catalog.Embeddings, catalog.Rerank, catalog.Score,
	} {
		g.route("/v1"+route.Path(), http.MethodPost, g.authenticated(credential.InferenceRoutes, g.completion(route)))
	}
	g.route("/v1/models", http.MethodGet, g.authenticated(credential.InferenceRoutes, g.listModels))
	g.route("/v1/models/{id...}", http.MethodGet, g.authenticated(credential.InferenceRoutes, g.getModel))
	g.route("/v1/usage", http.MethodGet, g.authenticated(credential.UsageRoutes, g.getUsage))
}

// rootBody is the answer to GET /: relative links to go on from. The media
// service has the document of both services.
const rootBody = `{"service":"Cutroom inference gateway","models":"./v1/models","health":"./healthz"}`

// Drain has calls that wait for an upstream refused, those that wait now and those
// that would have to wait later. Calls that have an upstream go on. A server that
// stops calls it first, because the calls before them need not end in time.
func (g *Gateway) Drain() { g.pools.Drain() }

// Close closes the idle connections to upstreams, and stops the embedded model
// server. Calls should have ended before.
func (g *Gateway) Close() { g.pools.Close() }

// Health returns the state of every upstream, in the catalog's order.
func (g *Gateway) Health() []upstream.Health { return g.pools.Health() }

// Queues returns the state of the queues of models that have one.
func (g *Gateway) Queues() []upstream.QueueState { return g.pools.Queues() }

// exposedHeaders are the header fields that a browser shows to the page in
// addition to those that it always shows.
var exposedHeaders = strings.Join([]string{
	"X-Request-Id", "X-Tokens-Used", costHeader, servedHeader, "Retry-After", "Allow", "WWW-Authenticate",
	"X-RateLimit-Limit-Requests", "X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests",
	"X-RateLimit-Limit-Tokens", "X-RateLimit-Remaining-Tokens", "X-RateLimit-Reset-Tokens",
}, ", ")

// ServeHTTP answers a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.config.Origins.Allow(w.Header(), r, exposedHeaders)
	// The mux would redirect to the cleaned path; a path that is not clean is
	// not a path of this service.
	if clean := path.Clean(r.URL.Path); !strings.HasPrefix(r.URL.Path, "/") || r.URL.Path != clean {
		NotFound(w)
		return
	}
	g.mux.ServeHTTP(w, r)
}

// handler answers a request, or returns the error to answer with.
type handler func(http.ResponseWriter, *http.Request) error

// route serves one path by one method; GET includes HEAD.
func (g *Gateway) route(pattern, method string, handle handler) {
	g.routes(pattern, map[string]handler{method: handle})
}

// routes serves one path by several methods; GET includes HEAD.
func (g *Gateway) routes(pattern string, by map[string]handler) {
	if get, ok := by[http.MethodGet]; ok {
		by[http.MethodHead] = get
	}
	methods := slices.Sorted(maps.Keys(by))
	allow := strings.Join(methods, ", ")
	g.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if httpserver.IsPreflight(r) {
			httpserver.AnswerPreflight(w, r, allow)
			return
		}
		handle, ok := by[r.Method]
		if !ok {
			w.Header().Set("Allow", allow)
			g.fail(w, r, &apierror.Error{
				Status: http.StatusMethodNotAllowed, Type: apierror.InvalidRequest,
				Message: "The path does not answer this method.",
			})
			return
		}
		if err := handle(w, r); err != nil {
			g.fail(w, r, err)
		}
	})
}

// NotFound answers a request whose path does not exist, or not for its sender.
func NotFound(w http.ResponseWriter) {
	e := &apierror.Error{Status: http.StatusNotFound, Type: apierror.InvalidRequest, Message: "There is nothing at this path."}
	writeJSON(w, e.Status, e.JSON())
}

// authenticated makes the checks that come before every route's own: who is
// calling, whether a token may be used from its origin (docs/contract/auth.md#scope), and
// whether a key is limited to other routes.
func (g *Gateway) authenticated(
	group credential.RouteGroup, handle func(http.ResponseWriter, *http.Request, credential.Principal) error,
) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		secret, ok := bearer(r.Header.Get("Authorization"))
		if !ok && isMessages(r) {
			secret = strings.TrimSpace(r.Header.Get("X-Api-Key"))
			ok = secret != ""
		}
		if !ok {
			return fault.New(fault.Unauthorized, "An API key is required in the header Authorization, after \"Bearer\".")
		}
		who, err := g.config.Authenticator.Authenticate(r.Context(), secret)
		if err != nil {
			return err
		}
		httpserver.SetAccount(r.Context(), who.Account())
		if !who.Scope().AllowsOrigin(r.Header.Get("Origin")) {
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

// bearer returns the secret of an Authorization field (RFC 6750, section 2.1);
// the case of the scheme does not matter.
func bearer(field string) (secret string, ok bool) {
	scheme, secret, ok := strings.Cut(field, " ")
	secret = strings.TrimSpace(secret)
	return secret, ok && secret != "" && strings.EqualFold(scheme, "Bearer")
}

func (g *Gateway) health(w http.ResponseWriter, r *http.Request) error {
	if g.config.Ready != nil {
		if err := g.config.Ready(r.Context()); err != nil {
			if fault.Is(err, fault.Unavailable) {
				return err // its message may be shown to anyone
			}
			return fault.Wrap(err, fault.Unavailable, "The gateway does not accept requests now.")
		}
	}
	writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// nopObserver ignores everything.
type nopObserver struct{}

func (nopObserver) Completed(Completion) {}
func (nopObserver) Attempted(Attempt)    {}
