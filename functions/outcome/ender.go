package main

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/job"
)

// event is messages of a queue, or else the event of an execution.
type event struct {
	Records []events.SQSMessage
	Detail  json.RawMessage
}

// ender ends the jobs that events tell of.
type ender struct {
	outcome *job.Reaper
	logger  *slog.Logger
}

// handle takes one event. Messages that could not be dealt with are in the answer;
// SQS keeps them.
func (e *ender) handle(ctx context.Context, told event) (answer events.SQSEventResponse, err error) {
	if len(told.Records) == 0 {
		return answer, e.stopped(ctx, told.Detail)
	}
	for _, record := range told.Records {
		if err := e.givenUp(ctx, record.Body); err != nil {
			// It stays in the queue, where a person finds it.
			e.logger.ErrorContext(ctx, "end a job that was given up on", "message", record.MessageId, "error", err)
			answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
		}
	}
	return answer, nil
}

func (e *ender) stopped(ctx context.Context, detail json.RawMessage) error {
	id, stop, err := stepfn.ReadStop(detail)
	if err != nil {
		return err
	}
	e.logger.WarnContext(ctx, "an execution stopped", "job", id, "stop", stop)
	return e.outcome.Stopped(ctx, id, stop)
}

func (e *ender) givenUp(ctx context.Context, body string) error {
	message, err := sqsqueue.ReadMessage(body)
	if err != nil {
		return err
	}
	e.logger.WarnContext(ctx, "a queue has given up on a job", "job", message.Job)
	return e.outcome.GivenUp(ctx, message.Job)
}
