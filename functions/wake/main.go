// Function wake raises the workers from none when work arrives: it is started by
// every execution that begins, and by calls that wait for a worker. Its event is
// of no use to it.
package main

import (
	"context"
	"os"

	"cutroom/shared/adapter/ecs"
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
	service := ecs.NewService(config, env.Required("CUTROOM_CLUSTER"), env.Required("CUTROOM_WORKER_SERVICE"))
	logger := lambdahttp.NewLogger(os.Stdout)
	return func(ctx context.Context, _ any) (any, error) {
		woken, err := service.Wake(ctx)
		if woken {
			logger.InfoContext(ctx, "the workers were woken")
		}
		return nil, err
	}, env.Err()
}
