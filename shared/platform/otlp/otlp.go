// Package otlp sends traces to a collector by OTLP over HTTP, configured by
// OpenTelemetry's environment variables.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"cutroom/shared/platform/trace"
)

const (
	// queueSize is how many ended spans may wait to be sent, some 4 MB. Beyond that, when
	// the collector is gone for example, spans are dropped.
	queueSize = 2048
	// batchSize is how many spans are sent at once, and batchEvery how long a span waits
	// for others.
	batchSize  = 256
	batchEvery = 2 * time.Second
	// sendTime bounds the sending of a batch with all its attempts, and stopTime the
	// sending of what is left when the program ends.
	sendTime = 10 * time.Second
	stopTime = 3 * time.Second
	// maxAnswer is how much of a collector's answer is read, in bytes: an error's text goes
	// into the log.
	maxAnswer = 8 << 10
	// maxAttributes bounds the attributes of a span, maxText each of their texts.
	maxAttributes, maxText = 32, 256
)

// The variables that say where traces are sent (OpenTelemetry, "OTLP Exporter
// Configuration"), and the one that turns everything off.
const (
	endpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesVariable   = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	disabledVariable = "OTEL_SDK_DISABLED"
)

// Traces makes spans and sends them. The zero value makes none.
type Traces struct {
	provider *sdk.TracerProvider
	logger   *slog.Logger
	// abandon ends what is still being sent.
	abandon context.CancelFunc
}

// FromEnvironment returns what the environment asks for: the zero value if neither
// OTEL_EXPORTER_OTLP_ENDPOINT nor OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set. The other
// variables of the exporter, of the sampler and of the resource are read by
// OpenTelemetry's SDK from the process's own environment. The service is the name of the
// program, where OTEL_SERVICE_NAME has no other.
//
// The caller closes it, after the last span has ended. That the collector cannot
// be reached is no error, and keeps nobody waiting.
//
// Errors: an endpoint that is no URL.
func FromEnvironment(ctx context.Context, getenv func(string) string, service string,
	logger *slog.Logger) (Traces, error) {
	endpoint := ""
	for _, variable := range []string{endpointVariable, tracesVariable} {
		value := getenv(variable)
		if value == "" {
			continue
		}
		if u, err := url.Parse(value); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return Traces{}, fmt.Errorf("%s: it is not a URL, for example http://127.0.0.1:4318", variable)
		}
		endpoint = value
	}
	if endpoint == "" || getenv(disabledVariable) == "true" {
		return Traces{}, nil
	}
	exporter, err := NewExporter(ctx)
	if err != nil {
		return Traces{}, fmt.Errorf("%s: %w", endpointVariable, err)
	}
	return New(exporter, service, logger), nil
}

// NewExporter returns an exporter with the limits of this package. Without options it is
// configured by OpenTelemetry's environment variables.
func NewExporter(ctx context.Context, options ...otlptracehttp.Option) (sdk.SpanExporter, error) {
	return otlptracehttp.New(ctx, append([]otlptracehttp.Option{
		otlptracehttp.WithTimeout(sendTime), otlptracehttp.WithMaxResponseSize(maxAnswer),
	}, options...)...)
}

// New returns Traces that send spans by the exporter, in the background. The caller closes
// them, after the last span has ended. Spans that cannot be sent are lost; whoever makes
// them never waits.
func New(exporter sdk.SpanExporter, service string, logger *slog.Logger) Traces {
	name := attribute.String("service.name", service)
	// The environment takes precedence over the program's own name.
	described, err := resource.Merge(resource.NewSchemaless(name), resource.Environment())
	if err != nil {
		described = resource.NewSchemaless(name)
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeCountLimit, limits.AttributeValueLengthLimit = maxAttributes, maxText
	limits.EventCountLimit = maxAttributes
	abandoned, abandon := context.WithCancel(context.Background())
	return Traces{logger: logger, abandon: abandon, provider: sdk.NewTracerProvider(
		sdk.WithResource(described), sdk.WithRawSpanLimits(limits),
		sdk.WithBatcher(&reporter{SpanExporter: exporter, logger: logger, abandoned: abandoned},
			sdk.WithMaxQueueSize(queueSize), sdk.WithMaxExportBatchSize(batchSize),
			sdk.WithBatchTimeout(batchEvery), sdk.WithExportTimeout(sendTime)),
	)}
}

// Tracer returns the tracer; nil if nothing is traced.
func (t Traces) Tracer() api.Tracer {
	if t.provider == nil {
		return nil
	}
	return t.provider.Tracer(trace.Scope)
}

// Close sends what is left, within 3 s, and stops. What cannot be sent by then is
// abandoned.
func (t Traces) Close() {
	if t.provider == nil {
		return
	}
	defer t.abandon()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.logger.Warn("send the last traces", "error", err)
	}
}

// reportEvery is the shortest time between two log lines that say that traces cannot be
// sent.
const reportEvery = time.Minute

// reporter logs the errors of an exporter. OpenTelemetry would pass them to a handler of
// the whole process, which writes lines of its own to stderr. The batch processor calls
// one method at a time.
type reporter struct {
	sdk.SpanExporter
	logger *slog.Logger
	// abandoned ends when nothing more is to be sent.
	abandoned context.Context
	next      time.Time
	lost      int
}

// ExportSpans sends a batch. A failure is logged, not returned.
func (r *reporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if r.abandoned.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.abandoned, cancel)()
	err := r.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	r.lost += len(spans)
	if now := time.Now(); now.After(r.next) {
		r.logger.Warn("traces could not be sent", "spans", r.lost, "error", err)
		r.next, r.lost = now.Add(reportEvery), 0
	}
	return nil
}
