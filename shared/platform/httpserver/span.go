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

// Observer is notified of responses, from the goroutine that handled the request.
type Observer interface {
	Answered(Answer)
}

type Answer struct {
	Method string
	// Route is the path's pattern, or "" if the path is unknown.
	Route    string
	Status   int
	Duration time.Duration
	// Received and Sent are the sizes of the bodies, in bytes.
	Received, Sent int64
}

// Monitoring systems request these paths every few seconds, so their spans would flood the traces.
var watched = []string{"/health", "/healthz", "/metrics"}

// begin starts a request's span. Its parent is the context's span, or else the client's span from the header (W3C
// Trace Context). If tracer is nil, the client's trace is forwarded. The span is nil if it is not recorded.
func begin(ctx context.Context, tracer api.Tracer, r *http.Request) (context.Context, api.Span) {
	if parent := Field(r.Header, trace.Header); parent != "" && !api.SpanContextFromContext(ctx).IsValid() {
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
		span.SetAttributes(attribute.String("http.request.method", knownMethod(r.Method)),
			attribute.String("http.route", r.Pattern), attribute.String("cutroom.request_id", e.ids[0]),
			attribute.String("cutroom.account", e.account))
		if status > 0 { // 0 if the request was cut off before the response started
			span.SetAttributes(attribute.Int("http.response.status_code", status))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
	}
	span.End()
}

// knownMethod follows OpenTelemetry's "Semantic conventions for HTTP": unknown methods become "_OTHER".
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return method
	}
	return "_OTHER"
}
