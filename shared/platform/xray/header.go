package xray

import (
	"context"
	"strings"

	api "go.opentelemetry.io/otel/trace"
)

// WithParent gives a context whose spans are beneath the segment that a tracing
// header of X-Ray names, such as Root=1-…;Parent=…;Sampled=1. Anything that is
// none leaves the context as it is.
func WithParent(ctx context.Context, header string) context.Context {
	var config api.SpanContextConfig
	for part := range strings.SplitSeq(header, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Root":
			version, rest, _ := strings.Cut(value, "-")
			if id, err := api.TraceIDFromHex(strings.Replace(rest, "-", "", 1)); version == "1" && err == nil {
				config.TraceID = id
			}
		case "Parent":
			if id, err := api.SpanIDFromHex(value); err == nil {
				config.SpanID = id
			}
		case "Sampled":
			config.TraceFlags = config.TraceFlags.WithSampled(value == "1")
		}
	}
	parent := api.NewSpanContext(config)
	if !parent.IsValid() {
		return ctx
	}
	return api.ContextWithRemoteSpanContext(ctx, parent)
}

// Header gives the tracing header by which AWS goes on with the trace of the
// context's span; "" where it is not sampled, so that AWS decides nothing anew.
func Header(ctx context.Context) string {
	span := api.SpanContextFromContext(ctx)
	if !span.IsValid() || !span.IsSampled() {
		return ""
	}
	return "Root=" + traceID(span.TraceID()) + ";Parent=" + span.SpanID().String() + ";Sampled=1"
}
