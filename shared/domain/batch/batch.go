// Package batch defines batches: thousands of inference calls that an account uploads as one file. The service
// makes the calls within a day, giving precedence to live calls (docs/contract/batches.md). The package imports
// neither HTTP nor a database, and makes no calls itself.
package batch

import (
	"time"

	"cutroom/shared/domain/fault"
)

const (
	// MaxLines is the maximum number of calls in a batch. MaxInput is the maximum size of the input file in bytes.
	MaxLines = 50_000
	MaxInput = 200_000_000
	// Window is the time within which the calls of a batch must be made.
	Window  = 24 * time.Hour
	MaxOpen = 100
	// MaxKept is the maximum number of batch records per account. If there are more, creating a
	// batch deletes the oldest records of ended batches.
	MaxKept         = 1000
	KeepRecord      = 30 * 24 * time.Hour
	FileLifetime    = 30 * 24 * time.Hour
	MinFileLifetime = time.Hour
	MaxErrors       = 50
)

const (
	InputPurpose  = "batch"
	OutputPurpose = "batch_output"
)

type Status string

// The statuses of a batch (docs/contract/batches.md#status). Failed, Completed, Expired and Cancelled are final.
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

func (s Status) Ended() bool { return s == Failed || s == Completed || s == Expired || s == Cancelled }

type Batch struct {
	// ID begins with "batch_". Ids sort by creation time.
	ID      string
	Account string
	// Key is the id of the permanent key that created the batch. The calls are billed to that key.
	Key string
	// Endpoint is the path of all calls, such as "/v1/embeddings".
	Endpoint string
	// InputBlob is the batch's own copy of the input file.
	Input, InputBlob string
	Metadata         map[string]string
	OutputLifetime   time.Duration

	Status Status
	// Model is the model of all calls. It is empty until the input has been validated.
	Model string
	// Errors lists the reasons why the batch failed or why the service ended it.
	Errors []Error
	// Outcome is the final status that the batch will get once it is finalized.
	Outcome Status
	// Output and Failures are the ids of the files with responses and with errors. They are set before the files
	// exist. An id is empty if its file will not be made.
	Output, Failures string
	// Answered and Failed count the calls that have ended. They are increased only by Store.Save.
	Total, Answered, Failed int

	Attempts Attempts
	// Revision is the number of changes to the record. It is set only by Store.Change.
	Revision int

	CreatedAt, ExpiresAt time.Time
	// The time of a status is zero if the batch has not reached that status.
	InProgressAt, FinalizingAt, CancellingAt time.Time
	EndedAt                                  time.Time
}

// Attempts counts consecutive attempts at a batch that made no progress. An attempt that ended with
// a clean shutdown does not count.
type Attempts struct {
	Count int
	// Status and Results (the number of calls with a result) are the values at the last attempt.
	Status  Status
	Results int
}

// Error is an error in a batch as a whole or in one line of its input.
type Error struct {
	// Code is a short identifier such as "invalid_json_line".
	Code    string `json:"code"`
	Message string `json:"message"`
	// Param is the invalid field, or empty. Line is the line number, counted from 1, or 0 if the
	// error concerns no line.
	Param string `json:"param,omitempty"`
	Line  int    `json:"line,omitempty"`
}

// Chunk is a blob of results, with one JSON object per line.
type Chunk struct {
	// Numbers start at 0. A runner saves a chunk only after reading all earlier chunks, so no line is in two chunks.
	Number int
	Blob   string
	// Failures is true if the results are errors, false if they are responses.
	Failures bool
	// Lines lists the input line numbers, counted from 1.
	Lines []int
}

// ErrNotFound is returned for a batch that does not exist or belongs to another account.
var ErrNotFound = fault.New(fault.NotFound, "Batch not found.")

var ErrEnded = fault.New(fault.Conflict, "The batch has ended.")

const blobPrefix = "batches"

func inputBlob(id string) string { return blobPrefix + "/" + id + "/input" }
