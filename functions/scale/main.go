// Function scale sets the number of workers based on the waiting and running jobs. A schedule invokes it every
// minute, and it ignores the event. After raising the number, it checks again within the minute.
package main

import (
	"context"
	"os"

	"cutroom/shared/app/fleetapp"
	"cutroom/shared/app/setting"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/lambdaevent"
	"cutroom/shared/platform/lambdahttp"
)

func main() { lambdaevent.Main(scale) }

func scale() (func(context.Context, any) (any, error), error) {
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	env := setting.NewFunction(os.Getenv)
	workers := fleetapp.New(env, config)
	if err := env.Err(); err != nil {
		return nil, err
	}
	logger := lambdahttp.NewLogger(os.Stdout)
	return func(ctx context.Context, _ any) (any, error) {
		change, err := workers.Check(ctx)
		if err == nil {
			change, err = workers.Follow(ctx, change, clock.Wait)
		}
		if change.To != change.From {
			logger.InfoContext(ctx, "changed the number of workers", "jobs", change.Jobs, "from", change.From, "to", change.To)
		}
		return nil, err
	}, workers.Rules.Validate()
}
