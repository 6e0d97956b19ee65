// Package lambda starts functions. A role needs lambda:InvokeFunction on each
// function that it starts.
package lambda

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"cutroom/shared/awsclient"
)

// Function is a function that others start.
type Function struct {
	client *lambda.Client
	name   string
}

// NewFunction makes a function from its name or ARN.
func NewFunction(config aws.Config, name string) *Function {
	return &Function{name: name, client: lambda.NewFromConfig(config, func(o *lambda.Options) {
		o.Retryer = awsclient.Retryer()
		o.HTTPClient = awsclient.HTTPClient(0)
	})}
}

// Start starts the function without an event and does not wait for it: Lambda
// itself tries again when it fails. A start that is repeated starts it twice.
func (f *Function) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err := f.client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &f.name, InvocationType: types.InvocationTypeEvent})
	if err != nil {
		return fmt.Errorf("lambda: start %s: %w", f.name, err)
	}
	return nil
}
