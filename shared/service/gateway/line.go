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

// LineAnswer is the answer to a call of a batch.
type LineAnswer struct {
	// Status and Body are those that a live call would get.
	Status int
	Body   []byte
	// RetryAfter is after how long the call may be answered, where it was refused for
	// now; otherwise 0.
	RetryAfter time.Duration
	// Cut reports whether the call was given up, because the context ended or its place
	// was needed by a live call. There is no answer then, and nothing to be metered unless
	// the cause is ErrGivenUp.
	Cut bool
	// Used is what is to be metered for the call, without an id.
	Used []usage.Record
}

// line is what a call of a batch has beyond a live one.
type line struct {
	// body is the caller's: it is not copied, and not counted against the memory of
	// bodies.
	body []byte
	// held is what the call holds of the memory of bodies, whose lock it has.
	held int64
	// yield gives the call up when a live call needs its place or its memory.
	yield func()
	used  []usage.Record
}

// errYielded is the cause of the end of a call whose place a live call has taken.
var errYielded = errors.New("gateway: a live call needs the place")

// ErrGivenUp is the cause to end the context of a call with that is not made again: it is
// metered as that of a live caller who leaves.
var ErrGivenUp = errors.New("gateway: the call is given up")

// BatchRoute returns the route of an endpoint of batches, such as
// "/v1/chat/completions" (docs/contract/batches.md#input).
func BatchRoute(endpoint string) (route catalog.Route, ok bool) {
	for _, route := range catalog.Routes() {
		if route != catalog.CountTokens && "/v1"+route.Path() == endpoint {
			return route, true
		}
	}
	return "", false
}

// AnswerLine makes a call of a batch: the same as a live call, but behind live calls
// (docs/contract/batches.md#priority) and at the price of batches. What it used is
// returned and not metered. The body must not change until then.
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

// givenUp reports whether the context of a call was ended for good.
func givenUp(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrGivenUp) }

// lineWriter keeps an answer.
type lineWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *lineWriter) Header() http.Header            { return w.header }
func (w *lineWriter) WriteHeader(status int)         { w.status = status }
func (w *lineWriter) Write(text []byte) (int, error) { return w.body.Write(text) }
