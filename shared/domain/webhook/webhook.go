// Package webhook notifies receivers of ended jobs and of budget warnings. Its messages are signed
// and retried as specified by Standard Webhooks (https://www.standardwebhooks.com, version 1). It
// imports neither HTTP nor a database.
package webhook

import (
	"context"
	"strings"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

var ErrNotNext = fault.New(fault.Conflict, "The attempt's number does not follow the last one.")

type EventType string

const (
	JobCompleted  EventType = "job.completed"
	JobFailed     EventType = "job.failed"
	BudgetWarning EventType = "budget.warning"
)

func EventOf(j job.Job) EventType {
	if j.Status == job.Completed {
		return JobCompleted
	}
	return JobFailed
}

// MessageID returns the same id for every retry, so that receivers recognize the message.
func MessageID(event string) string { return "msg_" + event[strings.IndexByte(event, '_')+1:] }

type Message struct {
	ID        string
	At        time.Time
	Body      []byte
	Signature string // over the id, time and body
}

type Response struct {
	Status     int
	RetryAfter time.Duration // as requested by the receiver, or 0
}

type Sender interface {
	// Send returns the receiver's response, even if its status is an error.
	//
	// Errors: a [NoResponse].
	Send(ctx context.Context, url string, m Message) (Response, error)
}

// NoResponse is shown to the account, so it reveals nothing about the service's network.
type NoResponse string

func (e NoResponse) Error() string { return string(e) }

type Attempt struct {
	Number   int
	At       time.Time
	Duration time.Duration
	Status   int       // the response's status, or 0
	Error    string    // why the attempt failed, or empty
	Next     time.Time // when the next attempt is due, or zero
}

type ScheduledAttempt struct {
	// Event is the id of the job or the warning. Its JSON name dates from versions without warnings.
	Event   string    `json:"job"`
	Account string    `json:"account"`
	Number  int       `json:"attempt"`
	At      time.Time `json:"at"`
}

func First(event, account string, at time.Time) ScheduledAttempt {
	return ScheduledAttempt{Event: event, Account: account, Number: 1, At: at}
}

type Log interface {
	// Attempts returns the attempts in order. They are kept as long as the job's record.
	Attempts(ctx context.Context, event string) ([]Attempt, error)
}

// Store stores attempts. Times have millisecond precision.
type Store interface {
	Log

	// Recording the same attempt again succeeds.
	//
	// Errors: fault.Conflict if the attempt's number does not follow the last recorded one.
	Record(ctx context.Context, e Event, a Attempt) error
}
