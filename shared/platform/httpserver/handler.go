package httpserver

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// Handler is the surface with all that this package adds to a request; New
// serves it. It is for programs that have no listener of their own too: where a
// connection's time limits cannot be set, they are left out.
func Handler(c Config) http.Handler {
	c = c.withDefaults()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(c, w, r) })
}

// exchange is what is known of one request and its answer beside their bytes.
type exchange struct {
	id      string
	account string
}

type exchangeKey struct{}

// RequestID gives the id of the request that the context belongs to, or "".
func RequestID(ctx context.Context) string {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return e.id
	}
	return ""
}

// SetAccount names the account that a request is from, for the access log. It
// is called by the goroutine that handles the request.
func SetAccount(ctx context.Context, account string) {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		e.account = account
	}
}

func serve(c Config, w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	e := &exchange{id: requestID(r.Header, c.NewRequestID)}
	w.Header().Set(requestIDHeader, e.id)
	ctx, span := begin(c.Tracer, r)
	r = withoutDoubled(r.WithContext(context.WithValue(ctx, exchangeKey{}, e)))

	controller := http.NewResponseController(w)
	body := newBody(r, controller, c.pace())
	if body != nil {
		r.Body = body
	}
	answer := &response{ResponseWriter: w, controller: controller, body: body, stall: c.Stall}

	aborted := run(c, answer, r)
	if !aborted {
		answer.finish(c.DrainBytes, c.DrainTime)
	}
	took := time.Since(start)
	end(span, r, e, answer.status)
	if c.Observer != nil {
		c.Observer.Answered(Answer{
			Method: knownMethod(r.Method), Route: r.Pattern, Status: answer.status, Duration: took, Received: body.received(), Sent: answer.sent,
		})
	}
	// The route's pattern, never the path or the query: those may hold ids and
	// keys.
	c.Logger.LogAttrs(r.Context(), slog.LevelInfo, "request",
		slog.String("request_id", e.id),
		slog.String("account", e.account),
		slog.String("method", r.Method),
		slog.String("route", r.Pattern),
		slog.Int("status", answer.status),
		slog.Int64("bytes_in", body.received()),
		slog.Int64("bytes_out", answer.sent),
		slog.Duration("duration", took),
		slog.Bool("aborted", aborted),
	)
	if aborted {
		// The server closes the connection on this, so that the client sees
		// that its answer is not whole.
		panic(http.ErrAbortHandler)
	}
}

// run calls the handler and answers for it when it panics. It reports whether
// the answer must be cut off.
func run(c Config, w *response, r *http.Request) (aborted bool) {
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
