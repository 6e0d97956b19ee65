// Package job holds the rules of asynchronous media jobs: states, runs, deadlines, visibility and
// admission. It imports neither HTTP nor a database; [Store] declares the methods that it needs.
package job

import (
	"path"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
)

// Status is a job's state (docs/contract/jobs.md#states).
type Status string

// Completed and Failed are terminal states.
const (
	Pending    Status = "pending"
	Processing Status = "processing"
	Completed  Status = "completed"
	Failed     Status = "failed"
)

func (s Status) Terminal() bool { return s == Completed || s == Failed }

// Code is the reason for a failure (docs/contract/jobs.md#failure-codes).
type Code string

const (
	InvalidInput Code = "invalid_input"
	EngineError  Code = "engine_error"
	WorkerLost   Code = "worker_lost"
	TimedOut     Code = "timeout"
	Cancelled    Code = "cancelled"
)

// Failure describes to the account why a job failed.
type Failure struct {
	Code Code `json:"code"`
	// Message is for the person who sent the job. It contains no path and no internal error.
	Message string `json:"message"`
}

func TimeoutFailure() Failure {
	return Failure{TimedOut, "The job did not finish within 10 minutes of its creation."}
}

func CancelledFailure() Failure { return Failure{Cancelled, "The job was cancelled."} }

func WorkerLostFailure() Failure {
	return Failure{WorkerLost, "The job was interrupted three times while it was being processed."}
}

const (
	// MaxAge is the time from a job's creation to its deadline.
	MaxAge = 10 * time.Minute
	// MaxRuns is the maximum number of runs that a job may start.
	MaxRuns = 3
	// FreeCrashes is the number of crashes of the one-machine server that do not count as a run.
	// The first crashes may not be the job's fault. But a job that runs during every crash may be
	// the cause and must end.
	FreeCrashes = 2
)

// Lane is a separate queue: work on one lane never waits for another lane.
type Lane string

const (
	VideoLane Lane = "video"
	ImageLane Lane = "image"
)

func LaneOf(kind catalog.Kind) Lane {
	if kind == catalog.Image {
		return ImageLane
	}
	return VideoLane
}

// Input is a file of an accepted job. The job keeps its own copy of the blob until it ends.
type Input struct {
	Blob string `json:"blob"`
	// Name is the client's cleaned name of the file, or empty.
	Name string `json:"name,omitempty"`
	MIME string `json:"mime"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// MD5 is in hex.
	MD5 string `json:"md5,omitempty"`
	// File is the blob of the stored file from which the input was copied. The file may have been
	// deleted. File is empty if the client sent the bytes with the job.
	File string `json:"file,omitempty"`
}

// Request is the content of a submission.
type Request struct {
	Prompt string `json:"prompt,omitempty"`
	// Options holds the other form fields that have a value: strings, bools and int64s by field
	// name. The seed is on the job.
	Options map[string]any `json:"options,omitempty"`
	// Inputs holds the files by field name.
	Inputs map[string]Input `json:"inputs,omitempty"`
	// Price is the model's price for the requested size at acceptance, or nil. Length is the
	// expected length of the result, or 0 if unknown.
	Price  *catalog.MediaPrice `json:"price,omitempty"`
	Length time.Duration       `json:"length,omitempty"`
	// Planned is the size and frame rate of the result, or nil if the input's header did not show its size.
	Planned *catalog.Plan `json:"planned,omitempty"`
	// Spread is set for jobs without inputs whose blob names begin with random digits (see
	// Config.SpreadBlobs). For jobs with inputs, the names of the inputs show it.
	Spread bool `json:"spread,omitempty"`
}

// Cost returns the cost of the job at its accepted price, in billionths of the currency. It uses
// the expected length until the result exists. The cost never exceeds a reserved cost. known is
// false if the cost is unknown. A failed job costs nothing.
func (j Job) Cost() (billionths int64, currency string, known bool) {
	price, length := j.Request.Price, j.Request.Length
	if price == nil || j.Status == Failed {
		return 0, "", false
	}
	if j.Result != nil && j.Result.Duration > 0 {
		length = j.Result.Duration
	}
	billionths, known = price.Of(length)
	for _, hold := range j.Holds {
		if hold.Unit == budget.Cost {
			billionths = min(billionths, hold.Amount)
		}
	}
	return billionths, price.Currency, known
}

// Option returns a string option, or "" if it is missing.
func (r Request) Option(name string) string {
	value, _ := r.Options[name].(string)
	return value
}

// Flag returns a boolean option, or false if it is missing.
func (r Request) Flag(name string) bool {
	value, _ := r.Options[name].(bool)
	return value
}

type Result struct {
	Blob string `json:"blob"`
	MIME string `json:"mime"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// SHA256 is in hex. It is the result's entity tag.
	SHA256 string `json:"sha256"`
	// Width and Height are in pixels. Duration is the length of a video. All are 0 in results of
	// early versions.
	Width    int           `json:"width,omitempty"`
	Height   int           `json:"height,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	// EnhancedPrompt is the expanded prompt that the engine used, or empty.
	EnhancedPrompt string `json:"enhanced_prompt,omitempty"`
	// Engine names the engine that made the result. It is empty in old results.
	Engine string `json:"engine,omitempty"`
	// Understood lists the phrases of the prompt that the engine followed. It is nil if unknown,
	// and empty if the engine followed none.
	Understood []string `json:"understood,omitzero"`
	// Notice is a message from the engine about the result, or empty.
	Notice string `json:"notice,omitempty"`
	// Credentials describes the Content Credentials in the result, or is nil.
	Credentials *Credentials `json:"credentials,omitempty"`
}

// Credentials summarizes the Content Credentials (C2PA) of a result.
type Credentials struct {
	// SourceType is a term of the IPTC vocabulary of digital sources, such as
	// "trainedAlgorithmicMedia".
	SourceType string `json:"source_type"`
	// SignedBy is the name in the signer's certificate.
	SignedBy string    `json:"signed_by"`
	SignedAt time.Time `json:"signed_at"`
}

type Job struct {
	ID      string
	Account string
	// Key is the id of the permanent key that submitted the job.
	Key string
	// Model is the canonical id.
	Model   string
	Lane    Lane
	Seed    uint32
	Request Request
	// Webhook is the URL that is notified when the job ends, or empty.
	Webhook string
	// Trace is the W3C traceparent of the submission, or empty. The worker's spans are its children.
	Trace string
	// Estimate is the engine's expected run time at acceptance, in whole milliseconds, or 0 if
	// unknown.
	Estimate time.Duration

	// Holds lists the amounts reserved in budgets at acceptance. They are settled when the job ends.
	Holds []budget.Hold

	Status Status
	// Progress is between 0 and 1 and never falls.
	Progress float64
	// Runs counts the started runs, except released runs and forgiven crashes (see FreeCrashes).
	Runs int
	// Nonce identifies the run in progress. Writes by any other run change nothing.
	Nonce string

	CreatedAt time.Time
	// Deadline is the time after which the job counts as failed if it has not ended.
	Deadline time.Time
	// StartedAt is when the first run started. CompletedAt is when the job completed or failed.
	// Both are zero until then.
	StartedAt, CompletedAt time.Time

	// Result is set only for completed jobs, and Failure only for failed jobs.
	Result  *Result
	Failure *Failure
}

// At returns the job's state at the given time. A job that is still open after its deadline has
// timed out, even if its record does not show that yet.
func (j Job) At(now time.Time) Job {
	if j.Status.Terminal() || now.Before(j.Deadline) {
		return j
	}
	failure := TimeoutFailure()
	j.Status, j.Nonce, j.CompletedAt, j.Failure = Failed, "", j.Deadline, &failure
	return j
}

// leastProgress is the minimum progress for estimating the rest of a run.
const leastProgress = 0.05

// Left estimates the time to the end of a job from its progress. It is unknown below
// leastProgress, and for jobs that are not in their first run.
func (j Job) Left(now time.Time) (left time.Duration, known bool) {
	if j.Status != Processing || j.Runs != 1 || j.Progress < leastProgress {
		return 0, false
	}
	spent := max(0, now.Sub(j.StartedAt))
	left = time.Duration(float64(spent) * (1 - j.Progress) / j.Progress)
	return max(0, min(left, j.Deadline.Sub(now))), true
}

// Folder returns the prefix of a job's blob names.
func Folder(id string) string { return "jobs/" + id }

// InputBlob names the blob of an input on one machine. Service.InputBlob works in every deployment.
func InputBlob(id, field string) string { return Folder(id) + "/" + field }

// spreadFolder is like Folder, but starts with the last digits of the id. They are random, while
// ids start with the time. So an object store that partitions names by prefix spreads new jobs.
func spreadFolder(id string) string { return "jobs/" + id[max(0, len(id)-2):] + "/" + id }

// ResultBlob names the blob of a run's result. Every run has its own name.
func ResultBlob(id, nonce string) string { return resultIn(Folder(id), nonce) }

func resultIn(folder, nonce string) string { return folder + "/result-" + nonce }

func (j Job) ResultBlob() string { return resultIn(j.folder(), j.Nonce) }

// folder returns the prefix of the job's blob names. It is taken from the name of an input, or
// from Request.Spread for jobs without inputs.
func (j Job) folder() string {
	for _, input := range j.Request.Inputs {
		if folder := path.Dir(input.Blob); path.Base(folder) == j.ID {
			return folder
		}
	}
	if j.Request.Spread {
		return spreadFolder(j.ID)
	}
	return Folder(j.ID)
}
