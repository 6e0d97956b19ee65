package awstest

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go/middleware"
)

// patient returns the configuration with a longer timeout for responses. On a busy machine, the local AWS stalls
// for longer than the product waits for AWS. A retried call would then take effect twice: for example, the first
// response would be lost together with the message in it. To test lost responses, use a [Proxy] instead.
func patient(config aws.Config) aws.Config {
	config.HTTPClient = awshttp.NewBuildableClient()
	config.APIOptions = append(config.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Patient", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			return next.HandleInitialize(withoutDeadline(ctx), in)
		}), middleware.Before)
	})
	return config
}

// withoutDeadline returns a context that ends when ctx is cancelled but not when its deadline passes.
func withoutDeadline(ctx context.Context) context.Context {
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return patient
}
