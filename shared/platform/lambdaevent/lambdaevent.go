// Package lambdaevent starts the Lambda functions that events invoke.
package lambdaevent

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// Main creates the event handler and serves events until Lambda ends the process. If creating the
// handler fails, it writes one line to stderr, which Lambda logs, and the start fails.
func Main[Event, Answer any](make func() (func(context.Context, Event) (Answer, error), error)) {
	handle, err := make()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.Start(handle)
}
