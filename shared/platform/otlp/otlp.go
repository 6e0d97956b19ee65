// Package otlp sends traces with OTLP over HTTP, configured through OpenTelemetry's environment variables.
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
	// queueSize limits the number of waiting spans, which take about 4 MB. Further spans are dropped.
	queueSize = 2048
	// batchSize is the number of spans sent together. batchEvery is how long a span waits for others.
	batchSize  = 256
	batchEvery = 2 * time.Second
	// sendTime limits the time to send a batch, including retries. stopTime limits sending the remaining spans at the
	// end.
	sendTime = 10 * time.Second
	stopTime = 3 * time.Second
	// maxAnswer limits how many bytes of a collector's response are read, because an error response is logged.
	maxAnswer = 8 << 10
	// Limits on the attributes per span and on the length of each string.
	maxAttributes, maxText = 32, 256
)

// See OpenTelemetry, "OTLP Exporter Configuration". disabledVariable turns all tracing off.
const (
	endpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesVariable   = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	disabledVariable = "OTEL_SDK_DISABLED"
)

// The zero value of Traces creates no spans.
type Traces struct {
	provider *sdk.TracerProvider
	logger   *slog.Logger
	abandon  context.CancelFunc
}

// FromEnvironment returns the zero value if neither OTEL_EXPORTER_OTLP_ENDPOINT nor
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set. OpenTelemetry's SDK reads the other variables for the
// exporter, the sampler and the resource from the process's environment. service is the program's
// name unless OTEL_SERVICE_NAME overrides it.
//
// The caller must close the result after the last span has ended. An unreachable collector causes
// neither an error nor a delay. An invalid endpoint is an error.
func FromEnvironment(ctx context.Context, getenv func(string) string, service string,
	logger *slog.Logger) (Traces, error) {
	endpoint := ""
	for _, variable := range []string{endpointVariable, tracesVariable} {
		value := getenv(variable)
		if value == "" {
			continue
		}
		if u, err := url.Parse(value); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return Traces{}, fmt.Errorf("%s: must be a URL, such as http://127.0.0.1:4318", variable)
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

// NewExporter creates an exporter with this package's limits. Without options, the environment configures it.
func NewExporter(ctx context.Context, options ...otlptracehttp.Option) (sdk.SpanExporter, error) {
	return otlptracehttp.New(ctx, append([]otlptracehttp.Option{
		otlptracehttp.WithTimeout(sendTime), otlptracehttp.WithMaxResponseSize(maxAnswer),
	}, options...)...)
}

// New returns Traces that send spans in the background. The caller must close them after the last
// span has ended. Spans that cannot be sent are dropped, and creating spans never blocks.
func New(exporter sdk.SpanExporter, service string, logger *slog.Logger) Traces {
	name := attribute.String("service.name", service)
	// The environment takes precedence over the program's name.
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

// Tracer returns nil if tracing is off.
func (t Traces) Tracer() api.Tracer {
	if t.provider == nil {
		return nil
	}
	return t.provider.Tracer(trace.Scope)
}

func (t Traces) Close() {
	if t.provider == nil {
		return
	}
	defer t.abandon()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.logger.Warn("cannot send the last traces", "error", err)
	}
}

const reportEvery = time.Minute

// reporter logs an exporter's errors. Otherwise OpenTelemetry would pass them to a global handler,
// which writes to stderr. The batch processor calls only one method at a time.
type reporter struct {
	sdk.SpanExporter
	logger    *slog.Logger
	abandoned context.Context
	next      time.Time
	lost      int
}

// ExportSpans logs failures and does not return them.
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
		r.logger.Warn("cannot send traces", "spans", r.lost, "error", err)
		r.next, r.lost = now.Add(reportEvery), 0
	}
	return nil
}
