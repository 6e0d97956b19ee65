package lambdahttp

import (
	"context"
	"io"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"cutroom/shared/platform/trace"
)

// NewLogger returns a logger that writes JSON lines. A request's lines contain its ids from API Gateway and Lambda.
func NewLogger(out io.Writer) *slog.Logger {
	return slog.New(trace.Logger(invocationHandler{slog.NewJSONHandler(out, nil)}))
}

type invocationKey struct{}

func withInvocation(ctx context.Context, gatewayID string) context.Context {
	return context.WithValue(ctx, invocationKey{}, gatewayID)
}

type invocationHandler struct{ slog.Handler }

func (h invocationHandler) Handle(ctx context.Context, record slog.Record) error {
	if id, ok := ctx.Value(invocationKey{}).(string); ok {
		record.AddAttrs(slog.String("gateway_request_id", id))
	}
	if invocation, ok := lambdacontext.FromContext(ctx); ok {
		record.AddAttrs(slog.String("lambda_request_id", invocation.AwsRequestID))
	}
	return h.Handler.Handle(ctx, record)
}

func (h invocationHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return invocationHandler{h.Handler.WithAttrs(attrs)}
}

func (h invocationHandler) WithGroup(name string) slog.Handler {
	return invocationHandler{h.Handler.WithGroup(name)}
}
