// Package xray reads and writes AWS X-Ray's tracing header, and names its annotations. Programs
// send their spans with OTLP (shared/app/tracing).
package xray

import (
	"context"
	"strings"

	api "go.opentelemetry.io/otel/trace"
)

// WithParent returns a context whose spans are children of the segment in an X-Ray tracing header,
// such as Root=1-…;Parent=…;Sampled=1. It ignores an invalid header.
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

// Header returns the X-Ray header for the context's trace, or "" if its span is not sampled.
func Header(ctx context.Context) string {
	span := api.SpanContextFromContext(ctx)
	if !span.IsValid() || !span.IsSampled() {
		return ""
	}
	id := span.TraceID().String()
	return "Root=1-" + id[:8] + "-" + id[8:] + ";Parent=" + span.SpanID().String() + ";Sampled=1"
}
