package gateway

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/usage"
)

// LineAnswer is the answer to a batch call.
type LineAnswer struct {
	// Status and Body are the same as for a live call.
	Status int
	Body   []byte
	// RetryAfter is when a temporarily refused call may be repeated, otherwise 0.
	RetryAfter time.Duration
	// Cut means that the call was abandoned, because the context ended or a live call needed its
	// place. It has no answer and no usage, unless the cause is ErrGivenUp.
	Cut bool
	// Used is the unmetered usage of the call, without an id.
	Used []usage.Record
}

// line has the additional state of a batch call.
type line struct {
	// body belongs to the caller. It is not copied, and does not count in the memory of bodies.
	body []byte
	// held is the call's body memory, guarded by that memory's lock.
	held int64
	// yield abandons the call when a live call needs its place or memory.
	yield func()
	used  []usage.Record
}

// errYielded ends a call whose place a live call has taken.
var errYielded = errors.New("gateway: a live call needs the place")

// ErrGivenUp is the cause for ending a call that is not repeated. It is metered like a live caller
// who leaves.
var ErrGivenUp = errors.New("gateway: the call is given up")

// BatchRoute returns the route of a batch endpoint, such as "/v1/chat/completions"
// (docs/contract/batches.md#input).
func BatchRoute(endpoint string) (route catalog.Route, ok bool) {
	for _, route := range catalog.Routes() {
		if route != catalog.CountTokens && "/v1"+route.Path() == endpoint {
			return route, true
		}
	}
	return "", false
}

// AnswerLine makes a batch call: the same as a live call, but after live calls
// (docs/contract/batches.md#priority) and at the price of batches. It returns the usage without
// metering it. The body must not change while it runs.
func (g *Gateway) AnswerLine(
	ctx context.Context, who credential.Principal, route catalog.Route, body []byte,
) LineAnswer {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1"+route.Path(), http.NoBody)
	if err != nil {
		return LineAnswer{Cut: true} // it cannot be: the path is one of the gateway's own
	}
	w := &lineWriter{header: http.Header{}, status: http.StatusOK}
	c := g.newCompletion(w, r, who, route)
	c.line = &line{body: body, yield: func() { cut(errYielded) }}
	apiErr := c.run()
	c.observe(apiErr)
	switch {
	case apiErr == nil:
		return LineAnswer{Status: w.status, Body: w.body.Bytes(), Used: c.line.used}
	case ctx.Err() != nil:
		cut := LineAnswer{Cut: true}
		if givenUp(ctx) {
			cut.Used = c.line.used
		}
		return cut
	}
	return LineAnswer{
		Status: apiErr.Status, Body: errorJSON(r, apiErr), RetryAfter: apiErr.RetryAfter, Used: c.line.used,
	}
}

// givenUp reports whether a call was ended for good.
func givenUp(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrGivenUp) }

type lineWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *lineWriter) Header() http.Header            { return w.header }
func (w *lineWriter) WriteHeader(status int)         { w.status = status }
func (w *lineWriter) Write(text []byte) (int, error) { return w.body.Write(text) }
