// Package batch holds the rules of batches: thousands of inference calls that an
// account uploads as one file, and that are answered within a day behind live calls
// (docs/contract/batches.md). It knows neither HTTP nor a database, nor how a call is
// answered.
package batch

import (
	"time"

	"cutroom/shared/domain/fault"
)

// The limits of a batch (docs/contract/batches.md#input).
const (
	// MaxLines is how many calls a batch may have, MaxInput the size of the largest
	// input in bytes.
	MaxLines = 50_000
	MaxInput = 200_000_000
	// Window is how long the calls of a batch may take.
	Window = 24 * time.Hour
	// MaxOpen is how many batches of an account may be open at once.
	MaxOpen = 100
	// MaxKept is how many records of an account are kept: older ones of batches that have
	// ended go when one is made.
	MaxKept = 1000
	// KeepRecord is how long the record of a batch is kept after its end.
	KeepRecord = 30 * 24 * time.Hour
	// FileLifetime is how long files for batches and their results are kept, unless
	// their request sets it.
	FileLifetime = 30 * 24 * time.Hour
	// MinFileLifetime is the shortest lifetime that a request may set.
	MinFileLifetime = time.Hour
	// MaxErrors is how many errors of its input a batch lists.
	MaxErrors = 50
)

// The purposes of files.
const (
	// InputPurpose is that of files that batches are made from, OutputPurpose that of
	// their results.
	InputPurpose  = "batch"
	OutputPurpose = "batch_output"
)

// Status is where a batch stands.
type Status string

// The statuses of a batch (docs/contract/batches.md#status). Failed, Completed, Expired
// and Cancelled are final.
const (
	Validating Status = "validating"
	Failed     Status = "failed"
	InProgress Status = "in_progress"
	Finalizing Status = "finalizing"
	Completed  Status = "completed"
	Expired    Status = "expired"
	Cancelling Status = "cancelling"
	Cancelled  Status = "cancelled"
)

// Ended reports whether the status is final.
func (s Status) Ended() bool {
	return s == Failed || s == Completed || s == Expired || s == Cancelled
}

// Batch is the record of a batch.
type Batch struct {
	// ID begins with "batch_" and sorts by creation.
	ID      string
	Account string
	// Key is the id of the permanent key that made the batch, which its calls are
	// billed to.
	Key string
	// Endpoint is the path of all its calls, such as "/v1/embeddings".
	Endpoint string
	// Input is the id of the file that it was made from, and InputBlob the copy of its
	// bytes that belongs to the batch.
	Input, InputBlob string
	Metadata         map[string]string
	// OutputLifetime is how long its results are kept.
	OutputLifetime time.Duration

	Status Status
	// Model is what all its calls name; it is known once the input was checked.
	Model string
	// Errors are why the batch failed, or was ended by somebody else than its account.
	Errors []Error
	// Outcome is how a batch that is finalized will end.
	Outcome Status
	// Output and Failures are the ids of the files with the answers and with the
	// errors, empty where there are none. They are set before the files exist.
	Output, Failures string
	// Total is how many calls it has, Answered and Failed how many of them have
	// succeeded and failed. Only Store.Save adds to the last two.
	Total, Answered, Failed int

	// Attempts are the times in a row that work on it was begun and came to no end.
	Attempts Attempts
	// Revision counts the changes of the record. Only Store.Change sets it.
	Revision int

	CreatedAt, ExpiresAt time.Time
	// The times at which it reached a status are zero if it has not.
	InProgressAt, FinalizingAt, CancellingAt time.Time
	// EndedAt is when it reached its final status.
	EndedAt time.Time
}

// Attempts counts how often work on a batch was begun in a state that it has not left
// since, unless the work was stopped in good order.
type Attempts struct {
	Count int
	// Status and Results are the state: Results is how many calls have a result.
	Status  Status
	Results int
}

// Error is a flaw of a batch or of a line of its input.
type Error struct {
	// Code is a short word such as "invalid_json_line".
	Code    string `json:"code"`
	Message string `json:"message"`
	// Param is the field that is wrong, Line the number of the line, from 1; both may
	// be empty.
	Param string `json:"param,omitempty"`
	Line  int    `json:"line,omitempty"`
}

// Chunk is a blob with the results of some lines, one line of JSON each.
type Chunk struct {
	// Number counts the chunks of a batch, from 0. Whoever keeps a chunk knows those
	// before it, so that no line is in two of them.
	Number int
	Blob   string
	// Failures reports whether the results are errors; otherwise they are answers.
	Failures bool
	// Lines are the numbers of the lines, from 1.
	Lines []int
}

// ErrNotFound is the one error for a batch that does not exist or is another account's.
var ErrNotFound = fault.New(fault.NotFound, "Batch not found.")

// ErrEnded is the error for results of a batch that has ended.
var ErrEnded = fault.New(fault.Conflict, "The batch has ended.")

// blobPrefix begins the names of all blobs of batches.
const blobPrefix = "batches"

// inputBlob names the copy of a batch's input.
func inputBlob(id string) string { return blobPrefix + "/" + id + "/input" }
