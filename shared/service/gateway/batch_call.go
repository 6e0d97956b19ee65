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

type BatchResponse struct {
	// Status and Body are the same as for a live call.
	Status int
	Body   []byte
	// RetryAfter is the delay before a temporarily rejected call may be retried, or 0.
	RetryAfter time.Duration
	// Cut means that no response arrived, because the context ended or a live call took the slot. The call has usage
	// only if the cause is ErrGivenUp.
	Cut bool
	// Used is the usage of the call, which the caller must record. Its records have no id.
	Used []usage.Record
}

type batchCall struct {
	// body is owned by the caller of BatchCall. It is not copied and does not count as body memory.
	body []byte
	// held is the number of bytes of body memory that the call uses. It is guarded by bodyMemory's lock.
	held int64
	// yield aborts the call when a live call needs its slot or memory.
	yield func()
	used  []usage.Record
}

var errYielded = errors.New("gateway: a live call took the slot of this batch call")

// ErrGivenUp is the cause for canceling a call that will not be retried. Its usage is metered, as
// it is when a live caller disconnects.
var ErrGivenUp = errors.New("gateway: the batch call was abandoned")

// BatchRoute returns the route for a batch endpoint, such as "/v1/chat/completions" (docs/contract/batches.md#input).
func BatchRoute(endpoint string) (route catalog.Route, ok bool) {
	for _, route := range catalog.Routes() {
		if route != catalog.CountTokens && !route.IsAudio() && "/v1"+route.Path() == endpoint {
			return route, true
		}
	}
	return "", false
}

// BatchCall makes one call of a batch. Live calls take precedence
// (docs/contract/batches.md#priority), and batch prices apply. It returns the usage without
// metering it. The caller must not change the body until BatchCall returns.
func (g *Gateway) BatchCall(
	ctx context.Context, who credential.Principal, route catalog.Route, body []byte,
) BatchResponse {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1"+route.Path(), http.NoBody)
	if err != nil {
		return BatchResponse{Cut: true} // unreachable: the path is a constant
	}
	w := &batchWriter{header: http.Header{}, status: http.StatusOK}
	c := g.newCompletion(w, r, who, route)
	c.batch = &batchCall{body: body, yield: func() { cut(errYielded) }}
	apiErr := c.run()
	c.observe(apiErr)
	switch {
	case apiErr == nil:
		return BatchResponse{Status: w.status, Body: w.body.Bytes(), Used: c.batch.used}
	case ctx.Err() != nil:
		cut := BatchResponse{Cut: true}
		if givenUp(ctx) {
			cut.Used = c.batch.used
		}
		return cut
	}
	return BatchResponse{
		Status: apiErr.Status, Body: errorJSON(r, apiErr), RetryAfter: apiErr.RetryAfter, Used: c.batch.used,
	}
}

func givenUp(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrGivenUp) }

type batchWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *batchWriter) Header() http.Header            { return w.header }
func (w *batchWriter) WriteHeader(status int)         { w.status = status }
func (w *batchWriter) Write(text []byte) (int, error) { return w.body.Write(text) }
