package gateway

import (
	"time"

	"cutroom/shared/domain/usage"
)

// Observer receives what the gateway does, for metrics. Its methods are called
// by many goroutines at once and must be quick.
type Observer interface {
	// Completed is called once for every call of a completions route, when its
	// answer has ended.
	Completed(Completion)
	// Attempted is called for every call to an upstream, when it has ended.
	Attempted(Attempt)
}

// Completion is one call of a completions route.
type Completion struct {
	// Route is "chat" or "completions".
	Route string
	// Model is the slug, empty if the call was refused before its model was
	// known.
	Model  string
	Stream bool
	// Status is the status of the answer, or 499 if the caller left before
	// there was one.
	Status int
	// Code is the code of the error that ended the answer or the stream; empty
	// if it ended well.
	Code string
	// Duration is how long the call took, FirstToken how long until the first
	// chunk of a stream arrived; 0 without one.
	Duration, FirstToken time.Duration
	// Waited is for how long the call waited in the model's queue.
	Waited time.Duration
	// Counts is what was metered.
	Counts usage.Counts
}

// Attempt is one call to an upstream.
type Attempt struct {
	Model, Upstream string
	Outcome         Outcome
}

// Outcome is how a call to an upstream ended.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = "succeeded"
	// Refused is an answer that says that the request is wrong.
	Refused Outcome = "refused"
	// Overloaded is an answer that asks to call again later.
	Overloaded Outcome = "overloaded"
	// Failed is an upstream that could not be reached, broke off, or sent an
	// answer that is not usable.
	Failed Outcome = "failed"
	// TimedOut is an upstream that was silent for too long.
	TimedOut Outcome = "timed_out"
	// Abandoned is a call that was given up because the caller left or the
	// server stopped.
	Abandoned Outcome = "abandoned"
)
