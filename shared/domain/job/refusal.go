package job

import "cutroom/shared/domain/fault"

// The refusals of jobs that have no parameters. Stores return them too, so that a
// caller reads the same whatever keeps the records.
var (
	// ErrNotFound is returned for a job that does not exist for the account.
	ErrNotFound = fault.New(fault.NotFound, "Job not found.")
	// ErrOverdue is returned for a run that starts after the job's deadline.
	ErrOverdue = fault.New(fault.Conflict, "The job is past its deadline.")
	// ErrNoRunsLeft is returned for a run beyond MaxRuns.
	ErrNoRunsLeft = fault.New(fault.Conflict, "The job has no runs left.")
	// ErrNoNonce is returned for a run that is started without a nonce.
	ErrNoNonce = fault.New(fault.Invalid, "A run has a nonce.")
	// ErrNotOwn is returned to a run that is not, or no longer, the job's current one.
	ErrNotOwn = fault.New(fault.Conflict, "The run is no longer the job's own.")
	// ErrEnded is returned for a write after the job's end.
	ErrEnded = fault.New(fault.Conflict, "The job has ended.")
	// ErrResultExpired is returned for a result that is past its age.
	ErrResultExpired = fault.New(fault.NotFound, "The job's result has expired.")
)

// The messages of engine errors whose cause is for the log only. Every engine uses
// them, so that a caller reads the same whatever edits.
const (
	// EngineFailedMessage is the message of any failure without a known reason.
	EngineFailedMessage = "The engine failed."
	// NoResultMessage is the message of an edit without a usable result.
	NoResultMessage = "The engine left no result."
)

// TooManyOpen returns the refusal of a job beyond the account's limit of open ones.
func TooManyOpen(limit int) *fault.Error {
	return fault.New(fault.Limited, "The account has %d jobs pending or processing, which is its limit.", limit)
}
