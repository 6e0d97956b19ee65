// Function reaper ends abandoned jobs, whose message is in a dead-letter queue or whose execution
// has stopped. The dead-letter queues and execution events invoke it.
package main

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/app/eventapp"
	"cutroom/shared/domain/job"
)

func main() { eventapp.Main(newReaper) }

func newReaper(p *eventapp.Parts) func(context.Context, event) (events.SQSEventResponse, error) {
	runs := dynamo.NewRuns(dynamo.NewClient(p.AWS), p.Required("CUTROOM_JOBS_TABLE"))
	r := &reaper{
		jobs:   &job.Reaper{Store: dynamo.NewJobs(runs, nil, nil, time.Now), Now: time.Now},
		logger: p.Logger,
	}
	return r.handle
}
