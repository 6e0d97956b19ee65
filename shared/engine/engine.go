// Package engine defines an engine that edits media: a spec in, progress while it works, one file
// out. The preview engine and the engine servers on GPUs implement [Engine].
package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
)

type Input struct {
	// The file must not be changed.
	Path string
	MIME string
	Info media.Info
}

type Spec struct {
	Job string
	// Model is the canonical id.
	Model  string
	Kind   catalog.Kind
	Prompt string
	// Seed makes the result repeatable: on one machine, equal specs produce the same bytes.
	Seed uint32
	// Options holds the other fields of the form (see job.Request).
	Options map[string]any
	// Data is the input to edit, or nil for text-to-video. Reference may be nil.
	Data, Reference *Input
	// Size is the exact size of the result, in square pixels, with the aspect ratio of Data, so
	// that scaling is enough. FPS and Duration are the result's frame rate and length, 0 for an
	// image.
	Size     catalog.Size
	FPS      int
	Duration time.Duration
	// Remaining is 0 if unknown. An engine that needs longer must return an error immediately.
	Remaining time.Duration
	// PreviewEvery is the shortest time between two previews, which are optional; 0 means none.
	PreviewEvery time.Duration
	// Thumbnails asks for thumbnails, and a video's poster, if the engine can make them.
	Thumbnails bool
	// Free returns how many more bytes a server's result may put on the disk; nil means no limit.
	Free func() (int64, error)
	// Folder is an empty folder for scratch files of this run. The caller removes it.
	Folder string
	// Output is the path of the result in Folder: an MP4, or a PNG for an image.
	Output string
}

type Progress struct {
	Fraction float64
	// Stage names the engine's current stage, such as "denoise".
	Stage string
	// Took is set only in the final reports of engines that measure their stages.
	Took time.Duration
	// Preview is a new small picture of the result so far, as a JPEG that [CheckPreview] accepts,
	// or nil. The engine must not change it afterwards.
	Preview []byte
}

// Outcome is an engine's report about a finished edit (docs/contract/jobs.md#engine-report).
type Outcome struct {
	// Engine names the engine, such as "preview".
	Engine string
	// Understood lists the parts of the prompt that the engine followed, such as "watercolor". It
	// is nil if unknown, and empty if it followed nothing.
	Understood []string
	// Notice is a message for the user in sentences, such as about ignored words, or empty.
	Notice string
	// Thumbnails makes small pictures, if requested, from the run's folder, which must exist. It
	// may be nil, and may be called once, even while the next run is running.
	Thumbnails func() Thumbnails
}

// Thumbnails holds JPEGs of a result and its input (docs/contract/jobs.md#thumbnails), and the
// poster of a video. Missing ones are nil.
type Thumbnails struct{ Result, Input, Poster []byte }

type Depicted struct {
	Input
	// Poster requests a poster. It shows the same moment as the thumbnails that are made with it.
	Poster bool
}

// Engine edits media. Run returns once Output is written completely, or with an error. When the
// context ends, it stops all work, leaves no process behind and returns the context's error. The
// callback is called from one goroutine at a time and must not block.
//
// Errors: [*Error]; any other counts as a retryable engine_error.
type Engine interface {
	Run(ctx context.Context, spec Spec, progress func(Progress)) (Outcome, error)
}

// OpenRegular opens a file that an engine's server could replace. It follows no link.
func OpenRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", path), err)
	}
	return file, nil
}

type Error struct {
	// Code is job.InvalidInput if the input is at fault, otherwise job.EngineError.
	Code    job.Code
	Message string
	// Retryable is true if another run of the same spec may succeed.
	Retryable bool
	// Err is the cause, for the log only.
	Err error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

func InvalidInput(cause error, format string, args ...any) *Error {
	return &Error{Code: job.InvalidInput, Message: fmt.Sprintf(format, args...), Err: cause}
}

// AsError returns the engine error in err's chain, or a retryable engine_error for any other error.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: job.EngineError, Message: job.EngineFailedMessage, Retryable: true, Err: err}
}
