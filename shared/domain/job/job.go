// Package job contains the rules for asynchronous media jobs: states, runs, deadlines, visibility
// and admission. It imports neither HTTP nor a database.
package job

import (
	"path"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
)

// Status is a job's state (docs/contract/jobs.md#states).
type Status string

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
	StartTimeout Code = "start_timeout"
	Cancelled    Code = "cancelled"
)

type Failure struct {
	Code Code `json:"code"`
	// Message contains no paths and no internal errors.
	Message string `json:"message"`
}

func TimeoutFailure() Failure {
	return Failure{TimedOut, "The job did not finish within 10 minutes of its creation."}
}

func StartTimeoutFailure() Failure {
	return Failure{StartTimeout, "The job did not start within the time that its request set."}
}

func CancelledFailure() Failure { return Failure{Cancelled, "The job was cancelled."} }

func WorkerLostFailure() Failure {
	return Failure{WorkerLost, "The job was interrupted three times while it was being processed."}
}

const (
	MaxAge  = 10 * time.Minute // from creation to the deadline
	MaxRuns = 3
	// FreeCrashes is how many crashes of the one-machine server do not count as runs of a job. A
	// job that is running at every crash may be the cause, so it must end.
	FreeCrashes = 2
)

// Lane is a separate queue. Jobs on one lane never wait for jobs on another.
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

// Input is an input file of a job. The job has its own copy of the blob until it ends.
type Input struct {
	Blob string `json:"blob"`
	Name string `json:"name,omitempty"` // a name cleaned by file.CleanName
	MIME string `json:"mime"`
	Size int64  `json:"size"`
	MD5  string `json:"md5,omitempty"` // in hex
	// File is the blob of the stored file or result that the input was copied from, or empty.
	File string `json:"file,omitempty"`
	// Reference is the id of that file, or of the result's job, or empty.
	Reference string `json:"reference,omitempty"`
}

type Request struct {
	Prompt string `json:"prompt,omitempty"`
	// Options maps form fields to strings, bools and int64s. The seed is in Job.Seed.
	Options map[string]any   `json:"options,omitempty"`
	Inputs  map[string]Input `json:"inputs,omitempty"`
	// Price is the model's price for the requested size when the job was accepted, or nil. Length is the expected
	// length of the result, or 0. Clip is the input's length according to its header, if the result's length differs.
	Price  *catalog.MediaPrice `json:"price,omitempty"`
	Length time.Duration       `json:"length,omitempty"`
	Clip   time.Duration       `json:"clip,omitempty"`
	// Planned is nil if the size could not be read from the input's header.
	Planned *catalog.Plan `json:"planned,omitempty"`
	// Spread is true if the job has no inputs and its blob names begin with random digits (see Config.SpreadBlobs).
	Spread bool `json:"spread,omitempty"`
	// Label is the label of the client token that submitted the job, or empty.
	Label string `json:"label,omitempty"`
}

// Cost returns the job's cost at its accepted price, in billionths of the currency. Until the result exists, it uses
// the expected length. It never exceeds a reserved cost. A failed job has no cost, and an unchanged result costs 0.
func (j Job) Cost() (billionths int64, currency string, known bool) {
	price, length := j.Request.Price, j.Request.Length
	if price == nil || j.Status == Failed {
		return 0, "", false
	}
	if changed, known := j.Changed(); known && !changed {
		return 0, price.Currency, true
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

// Changed reports whether the result differs from the input in anything but size and frame rate. known is false
// without a result or an input, or if the engine did not report which part of the prompt it followed.
func (j Job) Changed() (changed, known bool) {
	if j.Result == nil || j.Request.Inputs[catalog.DataField].Blob == "" {
		return false, false
	}
	return len(j.Result.Understood) > 0, j.Result.Understood != nil
}

func (r Request) Option(name string) string {
	value, _ := r.Options[name].(string)
	return value
}

func (r Request) Flag(name string) bool {
	value, _ := r.Options[name].(bool)
	return value
}

type Result struct {
	Blob   string `json:"blob"`
	MIME   string `json:"mime"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hex; used as the entity tag
	// Width and Height are in pixels. Duration is the length of a video. All three are 0 in old results.
	Width    int           `json:"width,omitempty"`
	Height   int           `json:"height,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	// EnhancedPrompt is the prompt as expanded by the engine, or empty.
	EnhancedPrompt string `json:"enhanced_prompt,omitempty"`
	Engine         string `json:"engine,omitempty"` // empty in old results
	// Understood lists the phrases of the prompt that the engine followed, or is nil if unknown.
	Understood []string `json:"understood,omitzero"`
	// Notice is a message from the engine about the result, or empty.
	Notice      string       `json:"notice,omitempty"`
	Credentials *Credentials `json:"credentials,omitempty"`
}

// Credentials summarizes a result's Content Credentials (C2PA).
type Credentials struct {
	// SourceType is an IPTC digital source type, such as "trainedAlgorithmicMedia".
	SourceType string `json:"source_type"`
	// SignedBy is the name in the signer's certificate.
	SignedBy string    `json:"signed_by"`
	SignedAt time.Time `json:"signed_at"`
}

type Job struct {
	ID      string
	Account string
	Key     string // the id of a permanent key
	Model   string
	Lane    Lane
	Seed    uint32
	Request Request
	Webhook string // a URL, or empty
	// Trace is the W3C traceparent of the job's submission, or empty.
	Trace string
	// Estimate is the engine's estimate when the job was accepted, in whole milliseconds, or 0 if unknown.
	Estimate time.Duration

	// Holds lists the amounts reserved in budgets. They are settled when the job ends.
	Holds []budget.Hold

	Status Status
	// Progress is from 0 to 1 and never falls.
	Progress float64
	// Runs counts the runs that have started, except for released runs and forgiven crashes (see FreeCrashes).
	Runs int
	// Nonce identifies the current run. Writes by any other run have no effect.
	Nonce string

	CreatedAt time.Time
	// Deadline is earlier until the job starts if the request has the option StartWithin (see RunDeadline).
	Deadline time.Time
	// StartedAt is zero until the first run starts. CompletedAt is zero until the job ends.
	StartedAt, CompletedAt time.Time

	Result  *Result // only for completed jobs
	Failure *Failure
}

// At returns the job's state at the given time. A job that is still open after its deadline has
// timed out, even if its record does not show that yet.
func (j Job) At(now time.Time) Job {
	if j.Status.Terminal() || now.Before(j.Deadline) {
		return j
	}
	failure := j.LateFailure()
	j.Status, j.Nonce, j.CompletedAt, j.Failure = Failed, "", j.Deadline, &failure
	return j
}

// LateFailure returns the failure of an open job whose deadline has passed.
func (j Job) LateFailure() Failure {
	if j.RunDeadline().After(j.Deadline) {
		return StartTimeoutFailure()
	}
	return TimeoutFailure()
}

// RunDeadline returns the deadline that the job has once it has started.
func (j Job) RunDeadline() time.Time {
	if within := j.Request.seconds(StartWithin); within > 0 && within < MaxAge && j.StartedAt.IsZero() {
		return j.Deadline.Add(MaxAge - within)
	}
	return j.Deadline
}

// leastProgress is the progress at which the remaining time is first estimated.
const leastProgress = 0.05

// Left estimates from a job's progress how much time it has left. The estimate is known only in the first run.
func (j Job) Left(now time.Time) (left time.Duration, known bool) {
	if j.Status != Processing || j.Runs != 1 || j.Progress < leastProgress {
		return 0, false
	}
	spent := max(0, now.Sub(j.StartedAt))
	left = time.Duration(float64(spent) * (1 - j.Progress) / j.Progress)
	return max(0, min(left, j.Deadline.Sub(now))), true
}

func Folder(id string) string { return "jobs/" + id }

// InputBlob works only on one machine. Service.InputBlob works in every deployment.
func InputBlob(id, field string) string { return Folder(id) + "/" + field }

// spreadFolder starts with the last two digits of the id. They are random, so an object store that
// partitions by name prefix spreads new jobs across partitions.
func spreadFolder(id string) string      { return "jobs/" + id[max(0, len(id)-2):] + "/" + id }
func ResultBlob(id, nonce string) string { return resultIn(Folder(id), nonce) }

func resultIn(folder, nonce string) string { return folder + "/result-" + nonce }
func (j Job) ResultBlob() string           { return resultIn(j.folder(), j.Nonce) }

// folder returns the common prefix of the job's blob names.
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
