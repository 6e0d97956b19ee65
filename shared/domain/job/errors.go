package job

import "cutroom/shared/domain/fault"

// Stores return these errors too, so that the messages are the same for every store.
var (
	ErrNotFound      = fault.New(fault.NotFound, "Job not found.")
	ErrOverdue       = fault.New(fault.Conflict, "The job is past its deadline.")
	ErrNoRunsLeft    = fault.New(fault.Conflict, "The job has used all of its runs.")
	ErrNoNonce       = fault.New(fault.Invalid, "A run needs a nonce.")
	ErrNotOwn        = fault.New(fault.Conflict, "The run is no longer the job's current run.")
	ErrEnded         = fault.New(fault.Conflict, "The job has ended.")
	ErrResultExpired = fault.New(fault.NotFound, "The job's result has expired.")
)

// These messages are for engine errors whose cause is only logged.
const (
	EngineFailedMessage = "The engine failed."
	// NoResultMessage is for edits that produce no usable result.
	NoResultMessage = "The engine returned no result."
)

func TooManyOpen(limit int) *fault.Error {
	return fault.New(fault.Limited, "The account has reached its limit of pending or processing jobs (%d).", limit)
}
