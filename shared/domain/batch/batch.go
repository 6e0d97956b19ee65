// Package batch holds the rules of batches: thousands of inference calls that an account uploads as
// one file, and that are answered within a day, after live calls (docs/contract/batches.md). It
// imports neither HTTP nor a database, and does not answer calls.
package batch

import (
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// MaxLines limits the calls of a batch, MaxInput the size of its input in bytes.
	MaxLines = 50_000
	MaxInput = 200_000_000
	// Window is how long the calls of a batch may take.
	Window = 24 * time.Hour
	// MaxOpen is how many batches of an account may be open at once.
	MaxOpen = 100
	// MaxKept is how many records of an account are kept. A new batch deletes older records of
	// ended batches.
	MaxKept = 1000
	// KeepRecord is how long the record of a batch is kept after its end.
	KeepRecord = 30 * 24 * time.Hour
	// FileLifetime is how long batch files and results are kept, unless the request sets it.
	FileLifetime = 30 * 24 * time.Hour
	// MinFileLifetime is the shortest lifetime that a request may set.
	MinFileLifetime = time.Hour
	// MaxErrors is how many errors of its input a batch lists.
	MaxErrors = 50
)

const (
	// InputPurpose is the purpose of input files, OutputPurpose of result files.
	InputPurpose  = "batch"
	OutputPurpose = "batch_output"
)

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

type Batch struct {
	// ID begins with "batch_" and sorts by creation.
	ID      string
	Account string
	// Key is the id of the permanent key that created the batch and pays for its calls.
	Key string
	// Endpoint is the path of all its calls, such as "/v1/embeddings".
	Endpoint string
	// Input is the id of the input file. InputBlob is the batch's copy of its bytes.
	Input, InputBlob string
	Metadata         map[string]string
	// OutputLifetime is how long its results are kept.
	OutputLifetime time.Duration

	Status Status
	// Model is the model of all calls. It is known once the input was checked.
	Model string
	// Errors are why the batch failed, or why the service ended it.
	Errors []Error
	// Outcome is the final status that a batch in finalizing will get.
	Outcome Status
	// Output and Failures are the ids of the files with answers and with errors. They are set
	// before the files exist, and empty if there will be no such file.
	Output, Failures string
	// Total counts the calls; Answered and Failed count the ended ones. Only Store.Save adds to
	// Answered and Failed.
	Total, Answered, Failed int

	Attempts Attempts
	// Revision counts the changes of the record. Only Store.Change sets it.
	Revision int

	CreatedAt, ExpiresAt time.Time
	// The times of statuses that the batch has not reached are zero.
	InProgressAt, FinalizingAt, CancellingAt time.Time
	EndedAt                                  time.Time
}

// Attempts counts consecutive runs of a batch that made no progress. A run that was stopped cleanly
// does not count.
type Attempts struct {
	Count int
	// Status and Results are the state at the last attempt. Results is the number of calls with a result.
	Status  Status
	Results int
}

// Error is a fault of a batch or of a line of its input.
type Error struct {
	// Code is a short word such as "invalid_json_line".
	Code    string `json:"code"`
	Message string `json:"message"`
	// Param is the wrong field, or empty. Line is the number of the line from 1, or 0.
	Param string `json:"param,omitempty"`
	Line  int    `json:"line,omitempty"`
}

// Chunk is a blob with results, one line of JSON each.
type Chunk struct {
	// Number counts the chunks of a batch from 0. A runner saves a chunk only after reading all
	// earlier ones, so no line is in two chunks.
	Number int
	Blob   string
	// Failures is true for errors, false for answers.
	Failures bool
	// Lines are the numbers of the input lines, from 1.
	Lines []int
}

// ErrNotFound is returned for a batch that does not exist or belongs to another account.
var ErrNotFound = fault.New(fault.NotFound, "Batch not found.")

var ErrEnded = fault.New(fault.Conflict, "The batch has ended.")

const blobPrefix = "batches"

func inputBlob(id string) string { return blobPrefix + "/" + id + "/input" }
