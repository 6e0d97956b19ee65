package main

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/functions"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/job"
)

type event struct {
	Records []events.SQSMessage
	Detail  json.RawMessage
}

type reaper struct {
	jobs   *job.Reaper
	logger *slog.Logger
}

// handle handles one event. The response lists the failed messages, which stay in SQS. If all messages failed, it returns
// an error, because Lambda's metric of errors, which an alarm watches, does not count failed messages.
func (r *reaper) handle(ctx context.Context, e event) (answer events.SQSEventResponse, fault error) {
	if len(e.Records) == 0 {
		return answer, r.stopped(ctx, e.Detail)
	}
	for _, record := range e.Records {
		if err := r.deadLetter(ctx, record.Body); err != nil {
			// The message stays in the queue so that a person can look into it.
			r.logger.ErrorContext(ctx, functions.JobNotEnded, "message", record.MessageId, "error", err)
			answer.BatchItemFailures = append(answer.BatchItemFailures,
				events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
			fault = err
		}
	}
	if len(answer.BatchItemFailures) == len(e.Records) {
		return events.SQSEventResponse{}, fault
	}
	return answer, nil
}

func (r *reaper) stopped(ctx context.Context, detail json.RawMessage) error {
	id, stop, err := stepfn.ReadStop(detail)
	if err != nil {
		return err
	}
	r.logger.WarnContext(ctx, "an execution stopped", "job", id, "stop", stop)
	return r.jobs.Stopped(ctx, id, stop)
}

// deadLetter handles a message of the dead-letter queue: a job's message, or an event that this function failed to handle
// or did not receive.
func (r *reaper) deadLetter(ctx context.Context, body string) error {
	var lost event
	if err := json.Unmarshal([]byte(body), &lost); err == nil && lost.Detail != nil {
		return r.stopped(ctx, lost.Detail)
	}
	message, err := sqsqueue.ReadMessage(body)
	if err != nil {
		return err
	}
	r.logger.WarnContext(ctx, functions.JobGivenUp, "job", message.Job)
	return r.jobs.GivenUp(ctx, message.Job)
}
