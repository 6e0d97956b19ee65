// Function wake raises the workers from none when work arrives: it is started by
// every execution that begins, by submissions that find no worker, and by calls that
// wait for one. Its event is of no use to it.
package main

import (
	"context"
	"os"

	"cutroom/shared/app/awsapp"
	"cutroom/shared/app/setting"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/lambdaevent"
	"cutroom/shared/platform/lambdahttp"
)

func main() { lambdaevent.Main(wake) }

func wake() (func(context.Context, any) (any, error), error) {
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	env := setting.NewEnvironment(os.Getenv)
	workers := awsapp.NewFleet(env, config)
	logger := lambdahttp.NewLogger(os.Stdout)
	return func(ctx context.Context, _ any) (any, error) {
		woken, err := workers.Wake(ctx)
		if woken {
			logger.InfoContext(ctx, "the workers were woken")
		}
		return nil, err
	}, env.Err()
}
