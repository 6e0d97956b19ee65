package webhook

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// Event is the end of a job or a budget warning, together with its receiver.
type Event struct {
	ID, Account string
	URL         string
	// FirstBy is the latest possible time of the first attempt. Counted from this time, attempts are kept as long as
	// a job's record.
	FirstBy time.Time
	// Body is the message. It is the same in every attempt.
	Body []byte
}

type Jobs interface {
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (job.Job, error)
}

type Warnings interface {
	// Errors: fault.NotFound.
	Warning(ctx context.Context, id string) (budget.Warning, error)
}

type Events struct {
	Jobs     Jobs
	Warnings Warnings
	// JobBody and WarningBody return the message, with identical bytes on every call.
	JobBody     func(job.Job) ([]byte, error)
	WarningBody func(budget.Warning) ([]byte, error)
}

// Errors: fault.NotFound if the event does not exist or has no receiver.
func (s Events) event(ctx context.Context, id string) (Event, error) {
	if budget.IsWarning(id) {
		w, err := s.Warnings.Warning(ctx, id)
		if err != nil {
			return Event{}, err
		}
		body, err := s.WarningBody(w)
		return Event{ID: id, Account: w.Account, URL: w.WarnURL, FirstBy: w.At, Body: body}, inMessage(err)
	}
	j, err := s.Jobs.Get(ctx, id)
	if err != nil {
		return Event{}, err
	}
	if !j.Notifies() {
		return Event{}, fault.New(fault.NotFound, "The job has no receiver.")
	}
	body, err := s.JobBody(j)
	return Event{ID: id, Account: j.Account, URL: j.Webhook, FirstBy: j.Deadline, Body: body}, inMessage(err)
}

func inMessage(err error) error {
	if err != nil {
		return fmt.Errorf("write the message: %w", err)
	}
	return nil
}
