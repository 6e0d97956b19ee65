package xray

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/trace"
)

// Span is an ended span, from which a document is made.
type Span struct {
	Name string
	// Context is the span's own, Parent that of the span above it, if any.
	Context, Parent api.SpanContext
	Kind            api.SpanKind
	Start, End      time.Time
	// Attributes describe the span; a later one replaces an earlier one with its key.
	Attributes []attribute.KeyValue
	Events     []Event
	// Failed is set if the span ended in an error.
	Failed bool
}

// Event is a moment of a span.
type Event struct {
	Name string
	Time time.Time
}
