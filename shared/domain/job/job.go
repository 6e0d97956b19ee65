// Package job holds the rules of asynchronous media jobs: their states, runs
// and deadline, who may see them, and when one is accepted. It knows neither
// HTTP nor a database; [Store] declares what it needs of one.
package job

import (
	"path"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
)

// Status is a job's state (docs/contract/jobs.md#states).
type Status string

// The states. Completed and Failed are terminal: they never change.
const (
	Pending    Status = "pending"
	Processing Status = "processing"
	Completed  Status = "completed"
	Failed     Status = "failed"
)

// Terminal reports whether the state never changes.
func (s Status) Terminal() bool { return s == Completed || s == Failed }

// Code says why a job failed (docs/contract/jobs.md#failure-codes).
type Code string

// The codes of failure.
const (
	InvalidInput Code = "invalid_input"
	EngineError  Code = "engine_error"
	WorkerLost   Code = "worker_lost"
	TimedOut     Code = "timeout"
	Cancelled    Code = "cancelled"
)

// Failure is why a job failed, as its account sees it.
type Failure struct {
	Code Code `json:"code"`
	// Message is for the person who sent the job; it holds no path and no
	// internal error.
	Message string `json:"message"`
}

// TimeoutFailure returns the failure of a job that did not end in time.
func TimeoutFailure() Failure {
	return Failure{TimedOut, "The job did not finish within 10 minutes of its creation."}
}

// CancelledFailure returns the failure of a job that its account cancelled.
func CancelledFailure() Failure { return Failure{Cancelled, "The job was cancelled."} }

// WorkerLostFailure returns the failure of a job whose runs were all lost.
func WorkerLostFailure() Failure {
	return Failure{WorkerLost, "The job was lost three times while it was being processed."}
}

const (
	// MaxAge is how long a job has from its creation to its end.
	MaxAge = 10 * time.Minute
	// MaxRuns is how many runs a job may start.
	MaxRuns = 3
	// FreeCrashes is how many crashes of the whole one-machine server cost a
	// running job no run. The first crashes may not be the job's fault; but a
	// job that is running in every crash may be the cause, and must come to an
	// end.
	FreeCrashes = 2
)

// Lane is a queue of its own: work on one lane never waits for another's.
type Lane string

// The lanes.
const (
	VideoLane Lane = "video"
	ImageLane Lane = "image"
)

// LaneOf returns the lane of a kind of model.
func LaneOf(kind catalog.Kind) Lane {
	if kind == catalog.Image {
		return ImageLane
	}
	return VideoLane
}

// Input is a file that an accepted job owns: a blob of its own, which is kept
// until the job has ended, whatever happens to the upload that it came from.
type Input struct {
	Blob string `json:"blob"`
	// Name is the client's name of the file, without its path and control characters;
	// empty if it sent none.
	Name string `json:"name,omitempty"`
	// MIME is the type detected from the content.
	MIME string `json:"mime"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// MD5 of the bytes, in hex.
	MD5 string `json:"md5,omitempty"`
	// File is the blob of the stored file that the input is a copy of; empty if the
	// bytes came with the job. The file may be gone.
	File string `json:"file,omitempty"`
}

// Request is what a job was asked to do.
type Request struct {
	Prompt string `json:"prompt,omitempty"`
	// Options are the other fields of the form that have a value: strings,
	// bools and int64s by field name. The seed is on the job.
	Options map[string]any `json:"options,omitempty"`
	// Inputs are the files by field name.
	Inputs map[string]Input `json:"inputs,omitempty"`
	// Price is that of the model, for the size that was asked for, when the job was accepted, nil if it had none, and
	// Length that of the result as far as it was known then, 0 if it was not.
	Price  *catalog.MediaPrice `json:"price,omitempty"`
	Length time.Duration       `json:"length,omitempty"`
	// Spread says that the job has no inputs whose names tell where its blobs are, and that
	// theirs begin with random digits (see Config.SpreadBlobs). It is set with the acceptance,
	// as versions that know no such names are still at work during an update.
	Spread bool `json:"spread,omitempty"`
}

// Cost returns what the job costs by its model's price when it was accepted, in
// billionths of the currency: by the length of its result, or before it has one by what
// is known of it. A job that has reserved its cost of a budget costs that at most. It reports
// whether it can be told; a failed job costs nothing.
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

// Option returns a string option, or "" when it has no value.
func (r Request) Option(name string) string {
	value, _ := r.Options[name].(string)
	return value
}

// Flag returns a boolean option, false when it has no value.
func (r Request) Flag(name string) bool {
	value, _ := r.Options[name].(bool)
	return value
}

// Result describes the one blob that a completed job has.
type Result struct {
	Blob string `json:"blob"`
	MIME string `json:"mime"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// SHA256 of the bytes, in hex; it is the result's entity tag.
	SHA256 string `json:"sha256"`
	// Width and Height are of the picture, in pixels, and Duration is the length of a
	// video; 0 for results of before these were kept.
	Width    int           `json:"width,omitempty"`
	Height   int           `json:"height,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	// EnhancedPrompt is the expanded prompt that the result was made with;
	// empty if the prompt was not expanded.
	EnhancedPrompt string `json:"enhanced_prompt,omitempty"`
	// Engine names the engine that made the result; empty for results of before
	// engines told.
	Engine string `json:"engine,omitempty"`
	// Understood names what the engine followed of the prompt: nil if it does not
	// tell, empty if that was nothing.
	Understood []string `json:"understood,omitzero"`
	// Notice is what the engine has to say of the result; empty for nothing.
	Notice string `json:"notice,omitempty"`
	// Credentials are the Content Credentials in the result; nil if it has none.
	Credentials *Credentials `json:"credentials,omitempty"`
}

// Credentials says what the Content Credentials (C2PA) in a result say.
type Credentials struct {
	// SourceType is how the result was made, a word of IPTC's vocabulary of digital
	// sources, such as "trainedAlgorithmicMedia".
	SourceType string `json:"source_type"`
	// SignedBy is whom the certificate names that they are signed by.
	SignedBy string    `json:"signed_by"`
	SignedAt time.Time `json:"signed_at"`
}

// Job is the record of one job.
type Job struct {
	ID      string
	Account string
	// Key is the id of the permanent key behind the submission.
	Key string
	// Model is the canonical id.
	Model   string
	Lane    Lane
	Seed    uint32
	Request Request
	// Webhook is the URL that receives a message when the job ends; empty for
	// none.
	Webhook string
	// Trace is the W3C trace context of the submission (its traceparent), the
	// parent of the worker's spans; empty if it is not traced.
	Trace string
	// Estimate is how long the engine was expected to work on it when it was accepted,
	// in whole milliseconds; 0 if nobody knew.
	Estimate time.Duration

	// Holds are what the job has taken from budgets when it was accepted. They are
	// settled when it ends.
	Holds []budget.Hold

	Status Status
	// Progress is 0 to 1 and never falls.
	Progress float64
	// Runs counts the runs that were started and neither released nor forgiven
	// (see FreeCrashes).
	Runs int
	// Nonce names the run in progress; writes of any other run change nothing.
	Nonce string

	CreatedAt time.Time
	// Deadline is when the job is over, whatever its state.
	Deadline time.Time
	// StartedAt is when the first run began, CompletedAt when the job completed
	// or failed; zero until then.
	StartedAt, CompletedAt time.Time

	// Result is set exactly when the job is completed, Failure exactly when it
	// has failed.
	Result  *Result
	Failure *Failure
}

// At returns the job as it is at the time: one that has not ended by its
// deadline has timed out, whether or not that is recorded.
func (j Job) At(now time.Time) Job {
	if j.Status.Terminal() || now.Before(j.Deadline) {
		return j
	}
	failure := TimeoutFailure()
	j.Status, j.Nonce, j.CompletedAt, j.Failure = Failed, "", j.Deadline, &failure
	return j
}

// leastProgress is the progress from which on the rest of a run can be estimated.
const leastProgress = 0.05

// Left estimates the time to the end of a job in its first run, from how far it is
// and how long that took. It is not known before a twentieth is done.
func (j Job) Left(now time.Time) (left time.Duration, known bool) {
	if j.Status != Processing || j.Runs != 1 || j.Progress < leastProgress {
		return 0, false
	}
	spent := max(0, now.Sub(j.StartedAt))
	left = time.Duration(float64(spent) * (1 - j.Progress) / j.Progress)
	return max(0, min(left, j.Deadline.Sub(now))), true
}

// Folder is the prefix of the names of a job's blobs.
func Folder(id string) string { return "jobs/" + id }

// InputBlob names the blob of an input on one machine, and Service.InputBlob anywhere.
func InputBlob(id, field string) string { return Folder(id) + "/" + field }

// spreadFolder is Folder with the last digits of the id, which are random, before it. An
// object store that divides names by their beginnings then divides those of new jobs, which
// otherwise begin alike, as ids begin with the time.
func spreadFolder(id string) string { return "jobs/" + id[max(0, len(id)-2):] + "/" + id }

// ResultBlob names the blob of a run's result. It is fixed by job and run, so
// that two runs never write to one name.
func ResultBlob(id, nonce string) string { return resultIn(Folder(id), nonce) }

func resultIn(folder, nonce string) string { return folder + "/result-" + nonce }

// ResultBlob names the blob of the current run's result, beside the inputs.
func (j Job) ResultBlob() string { return resultIn(j.folder(), j.Nonce) }

// folder returns the prefix of the names of the job's blobs: that of its inputs, or what the
// request says of a job that has none.
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
