package engineserver

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/boundedjson"
)

// Request is a run for an engine server. Paths are absolute, on the disk that
// the two programs share; times are in seconds, sizes in pixels.
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
	// Remaining is in how many seconds the run is stopped, 0 if that is not known.
	// The server refuses at once what it does not expect to end by then.
	Remaining float64 `json:"remaining,omitempty"`
	// PreviewEvery is the least time between two previews, 0 if none are wanted. A
	// server of before there were previews sends none, and one that is not asked for
	// them sends none either, as its lines would be too long for an older worker.
	PreviewEvery float64 `json:"preview_every,omitempty"`
	// Folder is empty and belongs to this run; Output is the file in it to
	// write.
	Folder string `json:"folder"`
	Output string `json:"output"`
}

// Input is a file to read, with what is known of it.
type Input struct {
	Path string `json:"path"`
	MIME string `json:"mime"`
	// Width and Height are as displayed, after a rotation that the file asks for.
	Width    int     `json:"width"`
	Height   int     `json:"height"`
	Duration float64 `json:"duration"`
	Audio    bool    `json:"audio"`
}

// Line is one line of a server's response: progress and its stage, or the run's
// end. A line without any of them only shows that the server is alive.
type Line struct {
	Progress *float64 `json:"progress,omitempty"`
	Stage    string   `json:"stage,omitempty"`
	// Preview is a small picture of what the result looks like so far, as a JPEG in
	// base64 (see engine.CheckPreview), beside the progress.
	Preview []byte   `json:"preview,omitempty"`
	Result  *Result  `json:"result,omitempty"`
	Error   *Failure `json:"error,omitempty"`
}

// Result ends a run that wrote its output.
type Result struct {
	// Bytes is the size of the output.
	Bytes int64 `json:"bytes"`
	// Stages maps each stage to the seconds that it took.
	Stages map[string]float64 `json:"stages,omitempty"`
	// Engine, Understood and Notice are what the server tells of the edit (see
	// engine.Outcome); all of them are optional.
	Engine     string   `json:"engine,omitempty"`
	Understood []string `json:"understood,omitzero"`
	Notice     string   `json:"notice,omitempty"`
}

// Name is the name of a server that does not tell its own.
const Name = "engine server"

const (
	// maxName bounds the name of an engine and each thing that it understood, in
	// code points.
	maxName = 64
	// maxUnderstood bounds how many things one understood.
	maxUnderstood = 16
)

// outcome returns what the server tells of the edit, within bounds.
func (r Result) outcome() engine.Outcome {
	told := engine.Outcome{Engine: oneLine(r.Engine, maxName), Notice: oneLine(r.Notice, maxMessage)}
	if told.Engine == "" {
		told.Engine = Name
	}
	if r.Understood != nil {
		told.Understood = []string{}
	}
	for _, part := range r.Understood[:min(len(r.Understood), maxUnderstood)] {
		told.Understood = append(told.Understood, oneLine(part, maxName))
	}
	return told
}

// stageName is the syntax of a stage's name, which becomes the name of a
// metric.
var stageName = regexp.MustCompile(`^[a-z][a-z_]{0,31}$`)

// maxValues bounds the values of an answer in JSON.
const maxValues = 10_000

// maxStages bounds the stages of a run.
const maxStages = 16

// stages returns the times, without those that make no sense.
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

// maxStageSeconds is a day; no run lasts longer.
const maxStageSeconds = 24 * 60 * 60

// Failure ends a run that wrote no output. Its message is for the person who
// sent the job.
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
	return &Input{
		Path: input.Path, MIME: input.MIME, Width: input.Info.Width, Height: input.Info.Height,
		Duration: input.Info.Duration.Seconds(), Audio: input.Info.Audio,
	}
}

// resultType returns the type of the file that a run must write.
func resultType(spec engine.Spec) string {
	if spec.Kind == catalog.Image {
		return "image/png"
	}
	return "video/mp4"
}

// maxMessage bounds a message that is shown to a person, in code points.
const maxMessage = 300

// asError returns the engine's error. Codes that an engine may not send, such
// as a cancellation, are taken for an engine_error.
func (f *Failure) asError() *engine.Error {
	code := f.Code
	cause := error(nil)
	if code != job.InvalidInput && code != job.EngineError {
		cause = fmt.Errorf("engineserver: the server's code is %.50q", string(code))
		code = job.EngineError
	}
	message := oneLine(f.Message, maxMessage)
	if message == "" {
		message = job.EngineFailedMessage
	}
	return &engine.Error{Code: code, Message: message, Retryable: f.Retryable, Err: cause}
}

// oneLine returns a server's text for people: without control characters and line
// breaks, and cut off after longest code points.
func oneLine(text string, longest int) string {
	text = strings.Join(
		strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }), " ",
	)
	if points := []rune(text); len(points) > longest {
		return string(points[:longest]) + "…"
	}
	return text
}

// parse reads a line.
func parse(line []byte) (Line, error) {
	var l Line
	if err := boundedjson.Unmarshal(line, maxValues, &l); err != nil {
		return l, garbled(fmt.Errorf("%.100q: %w", line, err))
	}
	return l, nil
}

// garbled returns the error of a server that violates the protocol.
func garbled(cause error) error {
	return &engine.Error{
		Code: job.EngineError, Message: "The engine gave an answer that makes no sense.", Retryable: true, Err: cause,
	}
}
