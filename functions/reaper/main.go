// Function reaper ends the jobs that nobody else will end: those whose message
// the queue has given up on, and those whose execution stopped by itself. The
// dead-letter queues and the executions' events start it.
package main

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/lambdaevent"
	"cutroom/shared/platform/lambdahttp"
)

func main() { lambdaevent.Main(newReaper) }

func newReaper() (func(context.Context, event) (events.SQSEventResponse, error), error) {
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	env := setting.NewEnvironment(os.Getenv)
	runs := dynamo.NewRuns(dynamo.NewClient(config), env.Required("CUTROOM_JOBS_TABLE"))
	r := &reaper{
		jobs:   &job.Reaper{Store: dynamo.NewJobs(runs, nil, nil, time.Now), Now: time.Now},
		logger: lambdahttp.NewLogger(os.Stdout),
	}
	return r.handle, env.Err()
}
