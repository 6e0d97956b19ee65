// Package engine defines an engine that edits media. An engine takes a spec, reports progress while it works, and
// writes one file. The preview engine and the engine servers on GPUs implement [Engine].
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
	// Model is the canonical model id.
	Model  string
	Kind   catalog.Kind
	Prompt string
	// Seed makes the result repeatable: on the same machine, equal specs produce identical bytes.
	Seed uint32
	// Options holds the other fields of the form (see job.Request).
	Options map[string]any
	// Data is the input to edit, or nil for text-to-video. Reference may be nil. For image-to-video, they are the first
	// and the last picture of the result.
	Data, Reference *Input
	// Size is the exact size of the result in square pixels. It has the aspect ratio of Data, so the engine only has
	// to scale. FPS and Duration are the frame rate and length of the result. Both are 0 for an image.
	Size     catalog.Size
	FPS      int
	Duration time.Duration
	// Remaining is the time left, or 0 if unknown. An engine that needs more time must return an error immediately.
	Remaining time.Duration
	// PreviewEvery is the minimum time between two previews. 0 means no previews. Previews are optional.
	PreviewEvery time.Duration
	// Thumbnails requests thumbnails, and a poster for a video, if the engine can make them.
	Thumbnails bool
	// Free returns how many more bytes a result from a server may use on the disk. nil means no limit.
	Free func() (int64, error)
	// Folder is an empty folder for this run's temporary files. The caller removes it.
	Folder string
	// Output is where to write the result in Folder: an MP4, or a PNG for an image.
	Output string
}

type Progress struct {
	Fraction float64
	// Stage names the engine's current stage, such as "denoise".
	Stage string
	// Took is how long a stage took. It is set only in the final reports of engines that measure this.
	Took time.Duration
	// Preview is a new, small picture of the result so far, or nil. It is a JPEG that
	// [CheckPreview] accepts. The engine must not modify it afterwards.
	Preview []byte
}

// Outcome is an engine's report about a finished edit (docs/contract/jobs.md#engine-report).
type Outcome struct {
	// Engine names the engine, such as "preview".
	Engine string
	// Untrained is true if an engine that uses trained models let another, without a model, make the result.
	Untrained bool
	// Understood lists the parts of the prompt that the engine followed, such as "watercolor". It is nil if they are
	// unknown, and empty if there are none.
	Understood []string
	// Notice is a message for the user in complete sentences, for example about words that were
	// ignored. It may be empty.
	Notice string
	// Size and Duration describe the result if the prompt changed them, for example with "rotate 90
	// degrees". Otherwise they are zero.
	Size     catalog.Size
	Duration time.Duration
	// Thumbnails makes the requested small pictures from files in the run's folder, which must still exist. It may be
	// nil. It may be called once, also while the next run is in progress.
	Thumbnails func() Thumbnails
}

// Thumbnails holds JPEGs of a result and its input (docs/contract/jobs.md#thumbnails), and the
// poster of a video. Missing pictures are nil.
type Thumbnails struct{ Result, Input, Poster []byte }

type Depicted struct {
	Input
	// Poster requests a poster, which shows the same moment as the thumbnails.
	Poster bool
}

// Engine edits media. Run returns after Output has been written completely, or with an error. When
// the context ends, Run stops all work, leaves no process behind and returns the context's error.
// progress is called from one goroutine at a time and must not block.
//
// Errors: [*Error]. Any other error is treated as a retryable engine_error.
type Engine interface {
	Run(ctx context.Context, spec Spec, progress func(Progress)) (Outcome, error)
}

// OpenRegular opens a regular file that an engine's server may have replaced. It does not follow symbolic links.
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
	// Code is job.InvalidInput if the input is at fault. Otherwise it is job.EngineError.
	Code    job.Code
	Message string
	// Retryable is true if running the same spec again may succeed.
	Retryable bool
	// Err is the cause, which is only logged.
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

// AsError returns the engine error in err's chain. If there is none, it returns a retryable engine_error.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: job.EngineError, Message: job.EngineFailedMessage, Retryable: true, Err: err}
}
