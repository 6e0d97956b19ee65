package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"cutroom/shared/platform/xray"
)

// X-Ray can search only the attributes listed here (see "OpenTelemetry concepts" in X-Ray's developer guide).
const annotationsAttribute = "aws.xray.annotations"

// exporter adds the annotations that functions use, so that one search finds spans of functions and containers.
type exporter struct{ sdk.SpanExporter }

func (e exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	annotated := make([]sdk.ReadOnlySpan, len(spans))
	for i, span := range spans {
		annotated[i] = annotatedSpan{span, annotate(span.Attributes())}
	}
	return e.SpanExporter.ExportSpans(ctx, annotated)
}

type annotatedSpan struct {
	sdk.ReadOnlySpan
	attributes []attribute.KeyValue
}

func (s annotatedSpan) Attributes() []attribute.KeyValue { return s.attributes }

func annotate(attributes []attribute.KeyValue) []attribute.KeyValue {
	annotated := make([]attribute.KeyValue, 0, len(attributes)+1)
	var keys []string
	for _, a := range attributes {
		if key := xray.Annotation(a.Key); key != "" {
			a.Key = attribute.Key(key)
			keys = append(keys, key)
		}
		annotated = append(annotated, a)
	}
	if keys == nil {
		return annotated
	}
	return append(annotated, attribute.StringSlice(annotationsAttribute, keys))
}
