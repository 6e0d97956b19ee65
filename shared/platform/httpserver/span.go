package httpserver

import (
	"context"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	api "go.opentelemetry.io/otel/trace"

	"cutroom/shared/platform/trace"
)

// Observer receives responses. The goroutine that has handled the request calls it.
type Observer interface {
	Answered(Answer)
}

type Answer struct {
	Method string
	// Route is the pattern of the path, or "" for an unknown path.
	Route    string
	Status   int
	Duration time.Duration
	// Received and Sent count the bytes of the bodies.
	Received, Sent int64
}

// Monitoring requests these paths every few seconds. Their spans would fill the traces.
var watched = []string{"/health", "/healthz", "/metrics"}

// begin starts a request's span below the context's span or the client's in the header (W3C Trace
// Context). A nil tracer forwards the client's trace. An unrecorded span is nil.
func begin(tracer api.Tracer, r *http.Request) (context.Context, api.Span) {
	ctx := r.Context()
	if parent := r.Header.Get(trace.Header); parent != "" && !api.SpanContextFromContext(ctx).IsValid() {
		ctx = trace.WithParent(ctx, parent)
	}
	if tracer == nil || slices.Contains(watched, r.URL.Path) {
		return ctx, nil
	}
	return tracer.Start(ctx, knownMethod(r.Method), api.WithSpanKind(api.SpanKindServer))
}

func end(span api.Span, r *http.Request, e *exchange, status int) {
	if span == nil {
		return
	}
	if span.IsRecording() {
		span.SetName(knownMethod(r.Method) + " " + r.Pattern)
		span.SetAttributes(
			attribute.String("http.request.method", knownMethod(r.Method)), attribute.String("http.route", r.Pattern),
			attribute.String("cutroom.request_id", e.id), attribute.String("cutroom.account", e.account),
		)
		if status > 0 { // otherwise it was cut off before it started
			span.SetAttributes(attribute.Int("http.response.status_code", status))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
	}
	span.End()
}

// See OpenTelemetry, "Semantic conventions for HTTP": unknown methods are "_OTHER".
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return method
	}
	return "_OTHER"
}
