package gateway

import (
	"time"

	"cutroom/shared/domain/usage"
)

// Observer receives events for metrics. Its methods must be safe for concurrent use, and fast.
type Observer interface {
	// Completed is called once for every call of a completions route, when its answer has ended.
	Completed(Completion)
	// Attempted is called for every call to an upstream, when it has ended.
	Attempted(Attempt)
}

type Completion struct {
	// Route is "chat" or "completions".
	Route string
	// Model is the slug, or empty for a call that was refused earlier.
	Model  string
	Stream bool
	// Status is the answer's status, or 499 if the caller left before it.
	Status int
	// Code is the code of the error that ended the answer or the stream, or empty.
	Code string
	// Duration is the time of the call. FirstToken is the time to a stream's first chunk, or 0.
	Duration, FirstToken time.Duration
	// Waited is how long the call waited in the model's queue.
	Waited time.Duration
	Counts usage.Counts
}

type Attempt struct {
	Model, Upstream string
	Outcome         Outcome
}

// Outcome is how a call to an upstream ended.
type Outcome string

const (
	Succeeded Outcome = "succeeded"
	// Refused means that the request is wrong.
	Refused Outcome = "refused"
	// Overloaded means that the upstream asks to call later.
	Overloaded Outcome = "overloaded"
	// Failed means that the upstream was unreachable, broke off, or sent an unusable answer.
	Failed Outcome = "failed"
	// TimedOut means that the upstream was silent for too long.
	TimedOut Outcome = "timed_out"
	// Abandoned means that the caller left or the server stopped.
	Abandoned Outcome = "abandoned"
)
