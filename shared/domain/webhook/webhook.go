// Package webhook notifies the receivers that submissions name of the ends of
// their jobs, and those that budgets name of warnings, by messages that are signed
// and repeated as Standard Webhooks (https://www.standardwebhooks.com, version 1)
// specifies. It knows neither HTTP nor a database; [Store] and [Sender] declare what
// it needs of them.
package webhook

import (
	"context"
	"strings"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
)

// ErrNotNext is returned for recording an attempt that is not the next one.
var ErrNotNext = fault.New(fault.Conflict, "The attempt is not the next one.")

// EventType is what a message is about.
type EventType string

// The types.
const (
	JobCompleted EventType = "job.completed"
	JobFailed    EventType = "job.failed"
	// BudgetWarning says that most or all of a budget is used.
	BudgetWarning EventType = "budget.warning"
)

// EventOf returns the type of the message about a job that has ended.
func EventOf(j job.Job) EventType {
	if j.Status == job.Completed {
		return JobCompleted
	}
	return JobFailed
}

// MessageID returns the id of the message about an event, whose id is that of a job or a
// warning. Both happen once, so the id is the same however often the message is sent:
// receivers recognize repetitions by it.
func MessageID(event string) string { return "msg_" + event[strings.IndexByte(event, '_')+1:] }

// Message is what is sent once.
type Message struct {
	ID   string
	At   time.Time
	Body []byte
	// Signature is over id, time and body.
	Signature string
}

// Answer is a receiver's response to a message.
type Answer struct {
	// Status is the HTTP status.
	Status int
	// RetryAfter is how long the receiver asks the sender to wait; 0 if it does
	// not.
	RetryAfter time.Duration
}

// Sender sends messages to their receivers.
type Sender interface {
	// Send returns the receiver's answer, whatever its status. It ends within
	// the context's time.
	//
	// Errors: a [NoAnswer].
	Send(ctx context.Context, url string, m Message) (Answer, error)
}

// NoAnswer is the error of a message that got no answer. It is shown to the
// account, so it reveals nothing about the network of the service itself.
type NoAnswer string

// Error returns the text.
func (e NoAnswer) Error() string { return string(e) }

// Attempt is the record of one attempt to send a message.
type Attempt struct {
	// Number counts from 1.
	Number int
	At     time.Time
	// Duration is how long the receiver took.
	Duration time.Duration
	// Status is that of the answer, 0 if there was none.
	Status int
	// Error is why the attempt failed; empty if it did not.
	Error string
	// Next is when the next attempt is due, the zero time if none follows.
	Next time.Time
}

// ScheduledAttempt is an attempt that is to be made.
type ScheduledAttempt struct {
	// Event is the id of the job or of the warning that it tells of. Queues have messages
	// of versions that told of jobs alone.
	Event   string `json:"job"`
	Account string `json:"account"`
	// Number is the attempt's, At when it is due.
	Number int       `json:"attempt"`
	At     time.Time `json:"at"`
}

// First returns the first scheduled attempt for an event of an account that happened at
// the time.
func First(event, account string, at time.Time) ScheduledAttempt {
	return ScheduledAttempt{Event: event, Account: account, Number: 1, At: at}
}

// Log lists the attempts that were made.
type Log interface {
	// Attempts returns the attempts to tell of an event in the order of their numbers,
	// none if none was made. They are kept as long as the record of a job.
	Attempts(ctx context.Context, event string) ([]Attempt, error)
}

// Store keeps attempts. Its behaviour is specified here and verified by the
// suite in webhooktest, which every adapter runs. Times are kept to the
// millisecond.
type Store interface {
	Log

	// Record adds an attempt to those of an event that somebody is told of.
	//
	// Errors: fault.Conflict when its number is not the one after the last that is
	// recorded. A Record that was made before succeeds.
	Record(ctx context.Context, e Event, a Attempt) error
}
