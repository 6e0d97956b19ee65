package httpserver

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// Handler adds this package's features to c.Handler. New serves the resulting handler. That handler also works
// without a listener, for example in a function, and skips deadlines that are not supported.
func Handler(c Config) http.Handler {
	c = c.withDefaults()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(r.Context(), &c, w, r) })
}

// exchange is a request and its response. It is the request's context.
type exchange struct {
	context.Context
	request *http.Request
	config  *Config
	// ids contains the request's id.
	ids        [1]string
	body       body
	answer     response
	controller http.ResponseController
	account    string
	refusal    string
}

func (e *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return e
	}
	if e.config.Value != nil {
		if value := e.config.Value(e.request, key); value != nil {
			return value
		}
	}
	return e.Context.Value(key)
}

// AfterFunc is context.AfterFunc for this context, with less work.
func (e *exchange) AfterFunc(f func()) (stop func() bool) { return AfterFunc(e.Context, f).Stop }

// AfterFunc is context.AfterFunc. For the contexts of requests, it takes less work.
func AfterFunc(ctx context.Context, f func()) Stopper {
	switch own := ctx.(type) {
	case *exchange:
		return AfterFunc(own.Context, f)
	case *loopCall:
		return own.afterFunc(f)
	}
	return stopFunc(context.AfterFunc(ctx, f))
}

// Stopper prevents the call of a function like the result of context.AfterFunc.
type Stopper interface{ Stop() bool }

type stopFunc func() bool

func (s stopFunc) Stop() bool { return s() }

type exchangeKey struct{}

// RequestID returns "" if the context does not belong to a request.
func RequestID(ctx context.Context) string {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return e.ids[0]
	}
	return ""
}

// SetAccount records a request's account. From then on, the access log shows the account, new connections do not
// replace this one, and a slow body gets its full time. It must be called from the goroutine that handles the
// request.
func SetAccount(ctx context.Context, account string) {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		e.account = account
		e.answer.body.trust()
	}
	if conn, ok := ctx.Value(connKey{}).(*watchedConn); ok {
		conn.connections.setKnown(conn, account)
	}
}

const RefusalKey = "refusal"

// SetRefusal marks a 5xx response as a rejection, which alarms ignore. reason is one short word. It
// must be called from the goroutine that handles the request.
func SetRefusal(ctx context.Context, reason string) {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		e.refusal = reason
	}
}

func serve(ctx context.Context, c *Config, w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	e := &exchange{config: c, request: r, ids: [1]string{requestID(r.Header, c.NewRequestID)}}
	w.Header()[requestIDHeader] = e.ids[:]
	ctx, span := begin(ctx, c.Tracer, r)
	e.Context = ctx
	if own, ok := e.Context.(*loopCall); ok {
		own.request = *r.WithContext(e) // without an allocation
	} else {
		r = r.WithContext(e)
	}
	r = collapseSlashes(r)

	e.controller = *http.NewResponseController(w)
	controller := &e.controller
	answer := &e.answer
	*answer = response{ResponseWriter: w, controller: controller, stall: c.Stall}
	if e.body.begin(r, start, controller, c.pace()) {
		r.Body, answer.body = &e.body, &e.body
	}
	if c.compresses {
		answer.asked = r.Header
	}

	aborted := run(c, answer, r)
	now := time.Now()
	took := now.Sub(start)
	if !aborted {
		answer.finish(now, c.DrainBytes, c.DrainTime)
	}
	end(span, r, e, answer.status)
	if c.Observer != nil {
		c.Observer.Answered(Answer{
			Method: knownMethod(r.Method), Route: r.Pattern, Status: answer.status,
			Duration: took, Received: answer.body.received(), Sent: answer.sent,
		})
	}
	e.log(c, r, answer, took, aborted)
	if aborted {
		// This panic makes the server close the connection, so that the response looks incomplete.
		panic(http.ErrAbortHandler)
	}
}

// log never logs the path or the query, which may contain ids and keys.
func (e *exchange) log(c *Config, r *http.Request, answer *response, took time.Duration, aborted bool) {
	level := c.levelOf(r, answer.status)
	if !c.Logger.Enabled(r.Context(), level) {
		return
	}
	attributes := []slog.Attr{
		slog.String("request_id", e.ids[0]),
		slog.String("account", e.account),
		slog.String("method", r.Method),
		slog.String("route", r.Pattern),
		slog.Int("status", answer.status),
		slog.Int64("bytes_in", answer.body.received()),
		slog.Int64("bytes_out", answer.sent),
		slog.Duration("duration", took),
		slog.Bool("aborted", aborted),
	}
	if e.refusal != "" {
		attributes = append(attributes, slog.String(RefusalKey, e.refusal))
	}
	c.Logger.LogAttrs(r.Context(), level, "request", attributes...)
}

// run calls the handler, and responds if it panics. It reports whether the response must be aborted.
func run(c *Config, w *response, r *http.Request) (aborted bool) {
	defer func() {
		switch p := recover(); {
		case p == nil:
		case p == http.ErrAbortHandler:
			aborted = true
		default:
			c.Logger.ErrorContext(r.Context(), "a handler panicked",
				"request_id", RequestID(r.Context()), "route", r.Pattern, "panic", p, "stack", string(debug.Stack()))
			if w.status != 0 {
				aborted = true
				return
			}
			clear(w.Header())
			w.Header().Set(requestIDHeader, RequestID(r.Context()))
			c.OnPanic(w, r)
		}
	}()
	c.Handler.ServeHTTP(w, r)
	return false
}

// levelOf returns debug for successful health probes, and for successful reads if QuietReads is set.
func (c *Config) levelOf(r *http.Request, status int) slog.Level {
	_, path, _ := strings.Cut(r.Pattern, "/")
	if (path == "healthz" || path == "health") && status == http.StatusOK {
		return slog.LevelDebug
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if c.QuietReads && reads && status >= http.StatusOK && status < http.StatusBadRequest {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
