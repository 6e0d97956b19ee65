// Function scale sets how many workers there are to be, by the jobs that wait and
// are in work. A schedule starts it every minute; its event is of no use to it.
package main

import (
	"context"
	"os"
	"time"

	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/lambdaevent"
	"cutroom/shared/platform/lambdahttp"
)

func main() { lambdaevent.Main(scale) }

// mostWorkers is how many tasks a service of ECS has at most, unless an account asks for more.
const mostWorkers = 5000

func scale() (func(context.Context, any) (any, error), error) {
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	env := setting.NewEnvironment(os.Getenv)
	workers := awsapp.NewFleet(env, config)
	workers.Lengths = sqsqueue.NewLengths(config, map[job.Lane]string{
		job.VideoLane: env.Required("CUTROOM_VIDEO_QUEUE"), job.ImageLane: env.Required("CUTROOM_IMAGE_QUEUE"),
	})
	workers.Rules = fleet.Rules{
		Min:     env.Number("CUTROOM_WORKER_MIN", 0, mostWorkers, 0),
		Max:     env.Number("CUTROOM_WORKER_MAX", 1, mostWorkers, 1),
		Backlog: env.Number("CUTROOM_WORKER_BACKLOG", 1, 1000, 2),
		Idle:    time.Duration(env.Number("CUTROOM_WORKER_IDLE", 5, 24*60, 10)) * time.Minute,
	}
	if err := env.Err(); err != nil {
		return nil, err
	}
	logger := lambdahttp.NewLogger(os.Stdout)
	return func(ctx context.Context, _ any) (any, error) {
		look, err := workers.Look(ctx)
		if look.To != look.From {
			logger.InfoContext(ctx, "the number of workers was changed", "jobs", look.Jobs, "from", look.From, "to", look.To)
		}
		return nil, err
	}, workers.Rules.Validate()
}
