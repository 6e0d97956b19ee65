// Package lambdaevent starts the Lambda functions that events invoke.
package lambdaevent

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// Main serves events until Lambda ends the process, or logs why the handler was not created.
func Main[Event, Answer any](make func() (func(context.Context, Event) (Answer, error), error)) {
	handle, err := make()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.Start(handle)
}
