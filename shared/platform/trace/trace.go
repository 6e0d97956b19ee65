// Package trace carries traces through the service: from a request to the job
// that it submits, and from that to the worker and the engine that do it. It
// knows the API of OpenTelemetry and nothing of where traces go; shared/platform/otlp
// and shared/platform/xray know that. Where none of them is set up a trace that a client
// began is still carried on, and shows in the logs.
//
// What a span is named and what it is described by holds no prompt, no key, no
// name of a file and no address with a query.
package trace

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	api "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Scope is the name under which the service's spans are made (OpenTelemetry's
// instrumentation scope).
const Scope = "cutroom"

// The names that a trace has where it passes from one program to another (W3C
// Trace Context, "Traceparent Header"). No tracestate goes along: it is other
// systems' and would have to be kept with every job.
const (
	parentField = "traceparent"
	// Header is the field of an HTTP request's header.
	Header = "Traceparent"
)

// Or gives the tracer, or one that records nothing where it is nil.
func Or(tracer api.Tracer) api.Tracer {
	if tracer == nil {
		return noop.Tracer{}
	}
	return tracer
}

// WithParent gives a context whose spans are beneath that of another program, by
// its traceparent. Anything that is none leaves the context as it is.
func WithParent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{parentField: traceparent})
}

// Parent gives the traceparent of the context's span, by which another program
// goes on with its trace; "" where there is none.
func Parent(ctx context.Context) string {
	if !api.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[parentField]
}

// ID gives the id of the context's trace, in hex, for the log; "" where there is
// none.
func ID(ctx context.Context) string {
	if span := api.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return ""
}

// Fail marks a span as failed by the error, which is not kept with it: its text
// may hold a path or what a client sent. The reason is one of the service's own
// codes, such as "engine_error". A nil error marks nothing.
func Fail(span api.Span, reason string, err error) {
	if err == nil || !span.IsRecording() {
		return
	}
	span.SetStatus(codes.Error, reason)
	span.SetAttributes(attribute.String("error.type", reason))
}

// Logger gives a handler of log lines that adds the id of the trace, as trace_id,
// to the lines that are written with the context of one.
func Logger(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	if id := ID(ctx); id != "" {
		record.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
