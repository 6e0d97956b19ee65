// Package webhook tells the receivers that submissions name of the ends of their
// jobs, by messages that are signed and tried again as Standard Webhooks
// (https://www.standardwebhooks.com, version 1) has it. It knows neither HTTP nor a
// database; [Store] and [Sender] say what it needs of them.
package webhook

import (
	"context"
	"strings"
	"time"

	"cutroom/shared/domain/job"
)

// EventType says what a message tells.
type EventType string

// The types.
const (
	JobCompleted EventType = "job.completed"
	JobFailed    EventType = "job.failed"
)

// EventOf gives the type of the message about a job that has ended.
func EventOf(j job.Job) EventType {
	if j.Status == job.Completed {
		return JobCompleted
	}
	return JobFailed
}

// MessageID gives the id of the message about a job. A job ends once, so that the
// id is the same however often the message is sent: receivers tell repetitions by
// it.
func MessageID(jobID string) string { return "msg_" + strings.TrimPrefix(jobID, "job_") }

// Message is what is sent once.
type Message struct {
	ID   string
	At   time.Time
	Body []byte
	// Signature is over id, time and body.
	Signature string
}

// Answer is what a receiver said to a message.
type Answer struct {
	// Status is that of HTTP.
	Status int
	// RetryAfter is how long the receiver wants to be left alone; 0 says nothing.
	RetryAfter time.Duration
}

// Sender takes messages to their receivers.
type Sender interface {
	// Send gives the receiver's answer, whatever its status. It is over within the
	// context's time.
	//
	// Errors: a [NoAnswer].
	Send(ctx context.Context, url string, m Message) (Answer, error)
}

// NoAnswer is the error of a message that got no answer. It is shown to the
// account, so it tells nothing of the network that the service itself is in.
type NoAnswer string

// Error gives the text.
func (e NoAnswer) Error() string { return string(e) }

// Attempt is the record of a message that was sent once, or was tried to be.
type Attempt struct {
	// Number counts from 1.
	Number int
	At     time.Time
	// Duration is how long the receiver took.
	Duration time.Duration
	// Status is that of the answer, 0 where there was none.
	Status int
	// Error says why the attempt failed; it is empty when it did not.
	Error string
	// Next is when the next attempt is due, the zero time where none follows.
	Next time.Time
}

// ScheduledAttempt is an attempt that is to be made.
type ScheduledAttempt struct {
	Job     string `json:"job"`
	Account string `json:"account"`
	// Number is the attempt's, At when it is due.
	Number int       `json:"attempt"`
	At     time.Time `json:"at"`
}

// First gives the first turn of an account's job that ended at the time.
func First(jobID, account string, ended time.Time) ScheduledAttempt {
	return ScheduledAttempt{Job: jobID, Account: account, Number: 1, At: ended}
}

// Log tells of the attempts that were made.
type Log interface {
	// Attempts gives the attempts of a job in the order of their numbers, none
	// where none was made. They are kept for as long as the job's record.
	Attempts(ctx context.Context, jobID string) ([]Attempt, error)
}

// Store keeps attempts. Its behaviour is specified here and checked by the suite
// in webhooktest, which every adapter runs. Times are kept to the millisecond.
type Store interface {
	Log

	// Record adds an attempt to those of a job that has ended and has a webhook.
	//
	// Errors: fault.Conflict when its number is not the one after the last that is
	// recorded. A Record that finds itself done has succeeded.
	Record(ctx context.Context, j job.Job, a Attempt) error
}
