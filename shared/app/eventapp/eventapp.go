// Package eventapp starts Lambda functions that are invoked by events. They have no HTTP callers,
// and all code linked into a function slows its start, so this package is separate from awsapp.
package eventapp

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cutroom/shared/app/setting"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/lambdaevent"
	"cutroom/shared/platform/lambdahttp"
)

type Parts struct {
	*setting.Environment
	AWS    aws.Config
	Logger *slog.Logger
}

// Main handles events until Lambda ends the process. It exits if a setting is invalid.
func Main[Event, Answer any](assemble func(*Parts) func(context.Context, Event) (Answer, error)) {
	lambdaevent.Main(func() (func(context.Context, Event) (Answer, error), error) {
		config, err := awsconfig.FromEnvironment(os.Getenv)
		if err != nil {
			return nil, err
		}
		p := &Parts{setting.NewFunction(os.Getenv), config, lambdahttp.NewLogger(os.Stdout)}
		handle := assemble(p)
		return handle, p.Err()
	})
}
