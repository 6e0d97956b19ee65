package gateway

import (
	"time"

	"cutroom/shared/domain/usage"
)

// Observer receives events for metrics. Its methods must be fast and safe for concurrent use.
type Observer interface {
	// Completed is called once per call of a completion route, after its response has ended.
	Completed(Completion)
	// Attempted is called once per upstream call, after the call has ended.
	Attempted(Attempt)
}

type Completion struct {
	Route string
	// Model is the model's slug, or empty if the call was rejected before the model was known.
	Model  string
	Stream bool
	// Status is the response's status, or 499 if the caller disconnected before the response.
	Status int
	// Code is the code of the error that ended the response or the stream, or empty.
	Code                 string
	Duration, FirstToken time.Duration
	// Waited is how long the call waited in the model's queue.
	Waited time.Duration
	Counts usage.Counts
}

type Attempt struct {
	Model, Upstream string
	Outcome         Outcome
}

type Outcome string

const (
	Succeeded Outcome = "succeeded"
	// Refused means that the upstream rejected the request as invalid.
	Refused Outcome = "refused"
	// Overloaded means that the upstream asked for a later retry.
	Overloaded Outcome = "overloaded"
	// Failed means that the upstream was unreachable or sent an unusable or incomplete response.
	Failed   Outcome = "failed"
	TimedOut Outcome = "timed_out"
	// Abandoned means that the caller disconnected or the server is shutting down.
	Abandoned Outcome = "abandoned"
)
