package webhook

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// Event is what a receiver is told of: the end of a job, or a warning of a budget.
type Event struct {
	// ID is that of the job or of the warning.
	ID, Account string
	// URL is the receiver's.
	URL string
	// Begun is when the attempts to tell of it began at the latest. They are kept from then
	// on as long as the record of a job from its deadline.
	Begun time.Time
	// Body is the message, the same bytes each time, so that its repetitions differ only in
	// their time.
	Body []byte
}

// Jobs finds jobs.
type Jobs interface {
	// Get returns the job.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (job.Job, error)
}

// Warnings finds warnings of budgets.
type Warnings interface {
	// Warning returns a warning.
	//
	// Errors: fault.NotFound.
	Warning(ctx context.Context, id string) (budget.Warning, error)
}

// Events finds what receivers are told of.
type Events struct {
	Jobs     Jobs
	Warnings Warnings
	// JobBody returns the message about a job that has ended, and WarningBody that about a
	// warning: the same bytes each time.
	JobBody     func(job.Job) ([]byte, error)
	WarningBody func(budget.Warning) ([]byte, error)
}

// event returns the event with the id.
//
// Errors: fault.NotFound if there is nothing that somebody is to be told of.
func (s Events) event(ctx context.Context, id string) (Event, error) {
	if budget.IsWarning(id) {
		w, err := s.Warnings.Warning(ctx, id)
		if err != nil {
			return Event{}, err
		}
		body, err := s.WarningBody(w)
		return Event{ID: id, Account: w.Account, URL: w.WarnURL, Begun: w.At, Body: body}, inMessage(err)
	}
	j, err := s.Jobs.Get(ctx, id)
	if err != nil {
		return Event{}, err
	}
	if j.Webhook == "" || !j.Status.Terminal() {
		return Event{}, fault.New(fault.NotFound, "Nobody is told of the job.")
	}
	body, err := s.JobBody(j)
	return Event{ID: id, Account: j.Account, URL: j.Webhook, Begun: j.Deadline, Body: body}, inMessage(err)
}

// inMessage names the place of an error.
func inMessage(err error) error {
	if err != nil {
		return fmt.Errorf("write the message: %w", err)
	}
	return nil
}
