package xray

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/trace"
)

// Span is what a document is made of: a span that has ended.
type Span struct {
	Name string
	// Context is the span's own, Parent that of the span above it, if any.
	Context, Parent api.SpanContext
	Kind            api.SpanKind
	Start, End      time.Time
	// Attributes describe it; a later one stands for an earlier one of its key.
	Attributes []attribute.KeyValue
	Events     []Event
	// Failed reports whether it ended in an error.
	Failed bool
}

// Event is a moment of a span.
type Event struct {
	Name string
	Time time.Time
}
