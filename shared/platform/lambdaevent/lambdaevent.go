// Package lambdaevent starts the Lambda functions that events start, and no
// callers.
package lambdaevent

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// Main is a function's main: it makes what handles an event, gives an answer to
// Lambda, and takes events until Lambda ends the process. What goes wrong before
// that is one line on stderr, which Lambda logs, and the start fails.
func Main[Event, Answer any](make func() (func(context.Context, Event) (Answer, error), error)) {
	handle, err := make()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.Start(handle)
}
