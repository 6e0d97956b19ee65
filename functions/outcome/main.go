// Function outcome gives an end to the jobs that nobody else will end: those whose
// message the queue has given up on, and those whose execution stopped by itself.
// It is started by the dead-letter queues and by the executions' events.
package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/awsconfig"
	"cutroom/shared/dynamo"
	"cutroom/shared/job"
	"cutroom/shared/lambdaevent"
	"cutroom/shared/lambdahttp"
	"cutroom/shared/setting"
	"cutroom/shared/sqs"
	"cutroom/shared/stepfn"
)

// event is messages of a queue, or else the event of an execution.
type event struct {
	Records []events.SQSMessage
	Detail  json.RawMessage
}

func main() { lambdaevent.Main(outcome) }

func outcome() (func(context.Context, event) (events.SQSEventResponse, error), error) {
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	env := setting.NewEnvironment(os.Getenv)
	runs := dynamo.NewRuns(dynamo.NewClient(config), env.Required("CUTROOM_JOBS_TABLE"))
	outcome := &job.Outcome{Store: dynamo.NewJobs(runs, nil, nil, time.Now), Now: time.Now}
	logger := lambdahttp.NewLogger(os.Stdout)
	return func(ctx context.Context, e event) (answer events.SQSEventResponse, _ error) {
		if len(e.Records) == 0 {
			id, stop, err := stepfn.ReadStop(e.Detail)
			if err != nil {
				return answer, err
			}
			logger.WarnContext(ctx, "an execution stopped", "job", id, "stop", stop)
			return answer, outcome.Stopped(ctx, id, stop)
		}
		for _, record := range e.Records {
			message, err := sqs.ReadMessage(record.Body)
			if err == nil {
				logger.WarnContext(ctx, "a queue has given up on a job", "job", message.Job)
				err = outcome.GivenUp(ctx, message.Job)
			}
			if err != nil {
				// It stays in the queue, where a person finds it.
				logger.ErrorContext(ctx, "end a job that was given up on", "message", record.MessageId, "error", err)
				answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
			}
		}
		return answer, nil
	}, env.Err()
}
