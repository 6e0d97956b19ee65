package awsclient

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/trace"

	"cutroom/shared/platform/trace"
)

// Trace gives a configuration whose clients make a span of every call, all its
// attempts included; without a tracer, which is nil, the same as before. Calls that
// belong to no trace make none.
func Trace(config aws.Config, tracer api.Tracer) aws.Config {
	if tracer == nil {
		return config
	}
	config = config.Copy()
	config.APIOptions = append(config.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(spans{tracer}, middleware.After)
	})
	return config
}

// spans makes the span of a call (OpenTelemetry, "Semantic conventions for AWS
// SDK"), by names of the SDK alone: what a call holds is the service's users'.
type spans struct{ tracer api.Tracer }

// ID names the middleware.
func (spans) ID() string { return "CutroomSpan" }

// HandleInitialize makes a call.
func (s spans) HandleInitialize(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	if !api.SpanContextFromContext(ctx).IsSampled() {
		return next.HandleInitialize(ctx, in)
	}
	service, operation := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	ctx, span := s.tracer.Start(ctx, service+"."+operation, api.WithSpanKind(api.SpanKindClient), api.WithAttributes(
		attribute.String("rpc.system", "aws-api"), attribute.String("rpc.service", service), attribute.String("rpc.method", operation)))
	defer span.End()
	out, metadata, err := next.HandleInitialize(ctx, in)
	trace.Fail(span, reasonOf(err), err)
	return out, metadata, err
}

// reasonOf gives the code of AWS's error, which is of a list; what went wrong on
// the way to AWS has none.
func reasonOf(err error) string {
	var told smithy.APIError
	if errors.As(err, &told) {
		return told.ErrorCode()
	}
	return "no_answer"
}
