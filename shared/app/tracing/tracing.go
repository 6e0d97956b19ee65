// Package tracing sets up tracing for the AWS containers.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsxray "github.com/aws/aws-sdk-go-v2/service/xray"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"cutroom/shared/platform/awsclient"
	"cutroom/shared/platform/otlp"
	"cutroom/shared/platform/xray"
)

// New returns the trace sender, which the caller must close. With CUTROOM_TRACING=xray it sends to X-Ray's OTLP
// endpoint, otherwise as otlp.FromEnvironment decides. service is the program's name.
func New(ctx context.Context, getenv func(string) string, clients aws.Config, service string,
	logger *slog.Logger) (otlp.Traces, error) {
	enabled, err := xray.Enabled(getenv)
	if err != nil {
		return otlp.Traces{}, err
	}
	if !enabled {
		return otlp.FromEnvironment(ctx, getenv, service, logger)
	}
	exporter, err := newExporter(ctx, clients)
	if err != nil {
		return otlp.Traces{}, fmt.Errorf("%s: %w", xray.Variable, err)
	}
	return otlp.New(exporter, service, logger), nil
}

const tracesPath = "/v1/traces"

func newExporter(ctx context.Context, clients aws.Config) (sdk.SpanExporter, error) {
	switch {
	case clients.Region == "":
		return nil, errors.New("no AWS region is set: set AWS_REGION")
	case clients.Credentials == nil:
		return nil, errors.New("no AWS credentials were found")
	}
	endpoint, err := endpointOf(ctx, clients)
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		Transport: &signer{awsclient.Transport(0), clients.Credentials, clients.Region, v4.NewSigner()},
		// A signature is valid for one host only, so follow no redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	sender, err := otlp.NewExporter(ctx,
		otlptracehttp.WithEndpointURL(endpoint), otlptracehttp.WithHTTPClient(client),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		// Ignore the headers in the environment, which are meant for another collector and contain its keys.
		otlptracehttp.WithHeaders(nil))
	if err != nil {
		return nil, err
	}
	return exporter{sender}, nil
}

// X-Ray's OTLP endpoint has the same host as its API.
func endpointOf(ctx context.Context, clients aws.Config) (string, error) {
	o := awsxray.NewFromConfig(clients).Options()
	endpoint, err := o.EndpointResolverV2.ResolveEndpoint(ctx, awsxray.EndpointParameters{
		Region: &o.Region, Endpoint: o.BaseEndpoint,
		UseFIPS:      aws.Bool(o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		UseDualStack: aws.Bool(o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
	})
	if err != nil {
		return "", fmt.Errorf("find the endpoint of X-Ray: %w", err)
	}
	return endpoint.URI.JoinPath(tracesPath).String(), nil
}
