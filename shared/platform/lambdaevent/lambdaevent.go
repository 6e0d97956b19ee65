// Package lambdaevent runs Lambda functions that are invoked by events.
package lambdaevent

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// Main handles events until Lambda ends the process. If the handler cannot be made, Main logs the error and exits.
func Main[Event, Answer any](make func() (func(context.Context, Event) (Answer, error), error)) {
	handle, err := make()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.Start(handle)
}
