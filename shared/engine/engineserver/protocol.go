package engineserver

import (
	"fmt"
	"regexp"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/boundedjson"
)

// Request describes a run. Paths are absolute, times are in seconds, and sizes are in pixels.
type Request struct {
	Job       string         `json:"job"`
	Model     string         `json:"model"`
	Kind      catalog.Kind   `json:"kind"`
	Prompt    string         `json:"prompt"`
	Seed      uint32         `json:"seed"`
	Options   map[string]any `json:"options"`
	Data      *Input         `json:"data"`
	Reference *Input         `json:"reference"`
	Width     int            `json:"width"`
	Height    int            `json:"height"`
	FPS       int            `json:"fps"`
	Duration  float64        `json:"duration"`
	// Remaining is the time until the run is stopped, or 0 if unknown. If the server expects to
	// need longer, it must reject the run immediately.
	Remaining float64 `json:"remaining,omitempty"`
	// PreviewEvery is the minimum time between two previews, or 0 for no previews. A server must not send previews
	// unless it is asked to, because their lines would be too long for old workers. Old servers never send any.
	PreviewEvery float64 `json:"preview_every,omitempty"`
	// Folder is an empty folder for this run only. Output is the file to write in that folder.
	Folder string `json:"folder"`
	Output string `json:"output"`
}

// Input is a PNG, or an MP4 without sound that has the result's size, frame rate and length.
type Input struct {
	Path string `json:"path"`
	MIME string `json:"mime"`
}

// Line reports progress, with its stage, or the end of the run. An empty line only shows that the server is alive.
type Line struct {
	Progress *float64 `json:"progress,omitempty"`
	Stage    string   `json:"stage,omitempty"`
	// Preview is an optional JPEG of the unfinished result (see engine.CheckPreview).
	Preview []byte   `json:"preview,omitempty"`
	Result  *Result  `json:"result,omitempty"`
	Error   *Failure `json:"error,omitempty"`
}

type Result struct {
	Bytes int64 `json:"bytes"`
	// FPS is the frame rate of a video, which may differ from the requested one, like its size.
	FPS int `json:"fps,omitempty"`
	// Stages maps stage names to seconds.
	Stages map[string]float64 `json:"stages,omitempty"`
	// The engine's report (see engine.Outcome). All fields are optional.
	Engine     string   `json:"engine,omitempty"`
	Understood []string `json:"understood,omitzero"`
	Notice     string   `json:"notice,omitempty"`
}

// Name is used for a server that does not report its own name.
const Name = "engine server"

const (
	// maxName limits an engine's name and each entry of Understood, in code points.
	maxName       = 64
	maxUnderstood = 16
)

func (r Result) outcome() engine.Outcome {
	report := engine.Outcome{Engine: engine.OneLine(r.Engine, maxName), Notice: engine.OneLine(r.Notice, maxMessage)}
	if report.Engine == "" {
		report.Engine = Name
	}
	if r.Understood != nil {
		report.Understood = []string{}
	}
	for _, part := range r.Understood[:min(len(r.Understood), maxUnderstood)] {
		report.Understood = append(report.Understood, engine.OneLine(part, maxName))
	}
	return report
}

// A stage name becomes a metric name.
var stageName = regexp.MustCompile(`^[a-z][a-z_]{0,31}$`)

const maxValues = 10_000

const maxStages = 16

func (r Result) stages() map[string]time.Duration {
	if len(r.Stages) > maxStages {
		return nil
	}
	stages := map[string]time.Duration{}
	for name, seconds := range r.Stages {
		if stageName.MatchString(name) && seconds >= 0 && seconds < maxStageSeconds {
			stages[name] = time.Duration(seconds * float64(time.Second))
		}
	}
	return stages
}

// No run takes a day.
const maxStageSeconds = 24 * 60 * 60

// Failure ends a run without output. Its message is for the user.
type Failure struct {
	Code      job.Code `json:"code"`
	Message   string   `json:"message"`
	Retryable bool     `json:"retryable"`
}

func requestOf(spec engine.Spec) Request {
	return Request{
		Job: spec.Job, Model: spec.Model, Kind: spec.Kind, Prompt: spec.Prompt, Seed: spec.Seed, Options: spec.Options,
		Data: inputOf(spec.Data), Reference: inputOf(spec.Reference),
		Width: spec.Size.Width, Height: spec.Size.Height, FPS: spec.FPS, Duration: spec.Duration.Seconds(),
		Remaining: spec.Remaining.Seconds(), PreviewEvery: spec.PreviewEvery.Seconds(), Folder: spec.Folder, Output: spec.Output,
	}
}

func inputOf(input *engine.Input) *Input {
	if input == nil {
		return nil
	}
	return &Input{Path: input.Path, MIME: input.MIME}
}

func resultType(spec engine.Spec) string {
	if spec.Kind == catalog.Image {
		return "image/png"
	}
	return "video/mp4"
}

// maxMessage limits a message for a user, in code points.
const maxMessage = 300

// Codes that an engine may not send, such as the code for a cancellation, become engine_error.
func (f *Failure) asError() *engine.Error {
	code := f.Code
	cause := error(nil)
	if code != job.InvalidInput && code != job.EngineError {
		cause = fmt.Errorf("engineserver: unknown error code %.50q", string(code))
		code = job.EngineError
	}
	message := engine.OneLine(f.Message, maxMessage)
	if message == "" {
		message = job.EngineFailedMessage
	}
	return &engine.Error{Code: code, Message: message, Retryable: f.Retryable, Err: cause}
}

func parse(line []byte) (Line, error) {
	var l Line
	if err := boundedjson.Unmarshal(line, maxValues, &l); err != nil {
		return l, garbled(fmt.Errorf("%.100q: %w", line, err))
	}
	return l, nil
}

// garbled returns the error for a server that violates the protocol.
func garbled(cause error) error {
	return &engine.Error{
		Code: job.EngineError, Message: "The engine returned an invalid response.", Retryable: true, Err: cause,
	}
}
