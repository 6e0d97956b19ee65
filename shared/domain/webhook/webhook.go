// Package webhook notifies receivers of ended jobs and of budget warnings. Its messages are signed
// and retried as specified by Standard Webhooks (https://www.standardwebhooks.com, version 1). It
// imports neither HTTP nor a database; [Store] and [Sender] declare the methods that it needs.
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

// EventOf returns the type of the message about an ended job.
func EventOf(j job.Job) EventType {
	if j.Status == job.Completed {
		return JobCompleted
	}
	return JobFailed
}

// MessageID returns the id of the message about an event. Each event happens once. Every retry has
// the same id, so receivers recognize it.
func MessageID(event string) string { return "msg_" + event[strings.IndexByte(event, '_')+1:] }

type Message struct {
	ID   string
	At   time.Time
	Body []byte
	// Signature covers id, time and body.
	Signature string
}

type Response struct {
	Status int
	// RetryAfter is the wait that the receiver asks for, or 0.
	RetryAfter time.Duration
}

type Sender interface {
	// Send returns the receiver's response with any status, within the context's time.
	//
	// Errors: a [NoResponse].
	Send(ctx context.Context, url string, m Message) (Response, error)
}

// NoResponse is the error for a message without a response. The account sees it, so it reveals
// nothing about the service's network.
type NoResponse string

func (e NoResponse) Error() string { return string(e) }

// Attempt is the record of one attempt to send a message.
type Attempt struct {
	Number   int
	At       time.Time
	Duration time.Duration
	// Status is the status of the response, or 0.
	Status int
	// Error is the reason for a failure, or empty.
	Error string
	// Next is the due time of the next attempt, or zero.
	Next time.Time
}

type ScheduledAttempt struct {
	// Event is the id of the job or the warning. Its JSON name dates from early versions, which had
	// only jobs.
	Event   string    `json:"job"`
	Account string    `json:"account"`
	Number  int       `json:"attempt"`
	At      time.Time `json:"at"`
}

// First returns the first attempt for an account's event that happened at the given time.
func First(event, account string, at time.Time) ScheduledAttempt {
	return ScheduledAttempt{Event: event, Account: account, Number: 1, At: at}
}

type Log interface {
	// Attempts returns the attempts for an event in order. They are kept for the age of a job's
	// record.
	Attempts(ctx context.Context, event string) ([]Attempt, error)
}

// Store keeps attempts. The suite in webhooktest specifies it; every adapter runs it. Times are
// stored to the millisecond.
type Store interface {
	Log

	// Record adds an attempt for an event. A repeated Record succeeds.
	//
	// Errors: fault.Conflict if the attempt's number does not follow the last recorded one.
	Record(ctx context.Context, e Event, a Attempt) error
}
