package gateway

import (
	"time"

	"cutroom/shared/domain/usage"
)

// Observer learns what the gateway does, for metrics. Its methods are called by
// many goroutines at once and must be quick.
type Observer interface {
	// Completed is called once for every call of a completions route, when its
	// answer has ended.
	Completed(Completion)
	// Attempted is called for every call of an upstream, when it has ended.
	Attempted(Attempt)
}

// Completion is one call of a completions route.
type Completion struct {
	// Route is "chat" or "completions".
	Route string
	// Model is the slug, empty where the call was refused before its model was
	// known.
	Model  string
	Stream bool
	// Status is the status of the answer, or 499 when the caller left before
	// there was one.
	Status int
	// Code is the code of the error that the answer, or the stream, ended with;
	// empty when it ended well.
	Code string
	// Duration is how long the call took, FirstToken how long until the first
	// chunk of a stream was there; 0 when there was none.
	Duration, FirstToken time.Duration
	// Counts is what is metered.
	Counts usage.Counts
}

// Attempt is one call of an upstream.
type Attempt struct {
	Model, Upstream string
	Outcome         Outcome
}

// Outcome is how a call of an upstream ended.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = "succeeded"
	// Refused is an answer that says the request is wrong.
	Refused Outcome = "refused"
	// Overloaded is an answer that asks to come back later.
	Overloaded Outcome = "overloaded"
	// Failed is an upstream that could not be reached, broke off, or answered
	// what is no answer.
	Failed Outcome = "failed"
	// TimedOut is an upstream that was silent for too long.
	TimedOut Outcome = "timed_out"
	// Abandoned is a call that was given up because the caller had left, or the
	// server stopped.
	Abandoned Outcome = "abandoned"
)

// UpstreamHealth is the state of an upstream at one moment.
type UpstreamHealth struct {
	Model, Upstream string
	// Open reports that the upstream is given no calls, as it has failed too
	// often of late, but for a probe now and then.
	Open bool
	// InFlight is how many calls it has, Limit how many it may have; 0 is no
	// limit.
	InFlight, Limit int
}
