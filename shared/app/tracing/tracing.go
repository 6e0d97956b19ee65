// Package tracing sets up the traces of a container in AWS, which go to X-Ray or to
// any collector, as the environment says.
package tracing

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsxray "github.com/aws/aws-sdk-go-v2/service/xray"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"cutroom/shared/platform/awsclient"
	"cutroom/shared/platform/otlp"
	"cutroom/shared/platform/xray"
)

// New returns the traces that the environment asks for. With CUTROOM_TRACING=xray
// spans go to X-Ray by its API, so that no collector has to run, or to be pulled,
// beside the container; otherwise otlp.FromEnvironment decides. The service is the
// program's name. The caller closes the traces. New fails if the settings are wrong.
func New(ctx context.Context, getenv func(string) string, clients aws.Config, service string,
	logger *slog.Logger) (otlp.Traces, error) {
	asked, err := xray.Enabled(getenv)
	if err != nil {
		return otlp.Traces{}, err
	}
	if !asked {
		return otlp.FromEnvironment(ctx, getenv, service, logger)
	}
	client := awsxray.NewFromConfig(clients, func(o *awsxray.Options) {
		o.Retryer, o.HTTPClient = awsclient.Retryer(), awsclient.HTTPClient(0)
	})
	return otlp.New(&exporter{client, service}, service, logger), nil
}

// maxDocuments is the most documents that one call to X-Ray takes.
const maxDocuments = 50

// exporter sends spans to X-Ray.
type exporter struct {
	client  *awsxray.Client
	service string
}

// ExportSpans sends spans. Those that X-Ray refuses are lost.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	for len(spans) > 0 {
		n := min(len(spans), maxDocuments)
		documents := make([]string, 0, n)
		for _, span := range spans[:n] {
			text, err := xray.Segment(spanOf(span), e.service)
			if err != nil {
				return err
			}
			documents = append(documents, string(text))
		}
		answer, err := e.client.PutTraceSegments(ctx, &awsxray.PutTraceSegmentsInput{TraceSegmentDocuments: documents})
		if err != nil {
			return fmt.Errorf("put segments: %w", err)
		}
		if refused := answer.UnprocessedTraceSegments; len(refused) > 0 {
			return fmt.Errorf("X-Ray did not take %d of %d: %s", len(refused), n, aws.ToString(refused[0].ErrorCode))
		}
		spans = spans[n:]
	}
	return nil
}

// spanOf converts a span for X-Ray.
func spanOf(span sdk.ReadOnlySpan) xray.Span {
	converted := xray.Span{
		Name: span.Name(), Context: span.SpanContext(), Parent: span.Parent(), Kind: span.SpanKind(),
		Start: span.StartTime(), End: span.EndTime(), Attributes: span.Attributes(),
		Failed: span.Status().Code == codes.Error,
	}
	for _, event := range span.Events() {
		converted.Events = append(converted.Events, xray.Event{Name: event.Name, Time: event.Time})
	}
	return converted
}

// Shutdown does nothing: the exporter keeps no spans.
func (e *exporter) Shutdown(context.Context) error { return nil }
