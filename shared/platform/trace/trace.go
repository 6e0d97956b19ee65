// Package trace carries traces from a request to the submitted job, and on to its worker and
// engine. It uses OpenTelemetry's API; shared/platform/otlp sends the traces. If no collector is
// configured, it still forwards a client's trace and logs the trace id.
//
// Span names and attributes never contain a prompt, a key, a file name, or a URL with a query.
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

// Scope is OpenTelemetry's instrumentation scope for the service's spans.
const Scope = "cutroom"

// Traces pass between programs under these names (W3C Trace Context). tracestate is not forwarded:
// it belongs to other systems and would have to be stored with every job.
const (
	parentField = "traceparent"
	Header      = "Traceparent"
)

func OrNoop(tracer api.Tracer) api.Tracer {
	if tracer == nil {
		return noop.Tracer{}
	}
	return tracer
}

// WithParent makes spans of the context children of the traceparent's span. It ignores an invalid traceparent.
func WithParent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{parentField: traceparent})
}

// Parent returns the traceparent of the context's span, to pass to another program, or "".
func Parent(ctx context.Context) string {
	if !api.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[parentField]
}

// ID returns the context's trace id in hex, for the log, or "".
func ID(ctx context.Context) string {
	if span := api.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return ""
}

// Fail marks a span as failed if err is not nil. It records only the reason, one of the service's
// codes, because an error's text may contain a path or client data.
func Fail(span api.Span, reason string, err error) {
	if err == nil || !span.IsRecording() {
		return
	}
	span.SetStatus(codes.Error, reason)
	span.SetAttributes(attribute.String("error.type", reason))
}

// Logger adds the id of the context's trace to each log line, as trace_id.
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
