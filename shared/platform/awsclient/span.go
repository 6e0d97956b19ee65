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

// Trace makes clients create one span per call, including all attempts. A nil tracer turns tracing off.
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

// spans records only names that the SDK defines, because call parameters contain users' data.
type spans struct{ tracer api.Tracer }

func (spans) ID() string { return "CutroomSpan" }

func (s spans) HandleInitialize(ctx context.Context, in middleware.InitializeInput,
	next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	if !api.SpanContextFromContext(ctx).IsSampled() {
		return next.HandleInitialize(ctx, in)
	}
	service, operation := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	ctx, span := s.tracer.Start(ctx, service+"."+operation, api.WithSpanKind(api.SpanKindClient), api.WithAttributes(
		attribute.String("rpc.system", "aws-api"), attribute.String("rpc.service", service),
		attribute.String("rpc.method", operation)))
	defer span.End()
	out, metadata, err := next.HandleInitialize(ctx, in)
	trace.Fail(span, reasonOf(err), err)
	return out, metadata, err
}

// reasonOf returns an AWS error's code, from a fixed list, or "no_answer" if there was no response.
func reasonOf(err error) string {
	var told smithy.APIError
	if errors.As(err, &told) {
		return told.ErrorCode()
	}
	return "no_answer"
}
