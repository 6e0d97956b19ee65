package job

import "cutroom/shared/domain/fault"

// Refusals without parameters. Stores return them too, so the text is the same for every store.
var (
	ErrNotFound   = fault.New(fault.NotFound, "Job not found.")
	ErrOverdue    = fault.New(fault.Conflict, "The job is past its deadline.")
	ErrNoRunsLeft = fault.New(fault.Conflict, "The job has no runs left.")
	ErrNoNonce    = fault.New(fault.Invalid, "A run has a nonce.")
	// ErrNotOwn is returned to a run that is not the job's current one.
	ErrNotOwn        = fault.New(fault.Conflict, "The run is no longer the job's own.")
	ErrEnded         = fault.New(fault.Conflict, "The job has ended.")
	ErrResultExpired = fault.New(fault.NotFound, "The job's result has expired.")
)

// Messages of engine errors whose cause is only logged. Every engine uses them.
const (
	// EngineFailedMessage is for failures without a known reason.
	EngineFailedMessage = "The engine failed."
	// NoResultMessage is for an edit without a usable result.
	NoResultMessage = "The engine left no result."
)

func TooManyOpen(limit int) *fault.Error {
	return fault.New(fault.Limited, "The account has %d jobs pending or processing, which is its limit.", limit)
}
