// Package engine declares what the service needs of an engine that edits media:
// a spec in, progress while it works, one file out. The preview engine and the
// engine servers on GPUs both implement [Engine].
package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
)

// Input is a file for the engine to read.
type Input struct {
	// Path is on a disk that the engine shares; the file must not be changed.
	Path string
	// MIME is the type detected from the content.
	MIME string
	// Info is what the probe found.
	Info media.Info
}

// Spec is one edit.
type Spec struct {
	// Job is the job's id, for logs.
	Job string
	// Model is the canonical id.
	Model  string
	Kind   catalog.Kind
	Prompt string
	// Seed makes the result repeatable: on the same machine an equal spec gives the
	// same bytes, and another seed gives others.
	Seed uint32
	// Options are the other fields of the form, by name (see job.Request).
	Options map[string]any
	// Data is what is edited, nil for text-to-video; Reference is the
	// reference image, nil when there is none.
	Data, Reference *Input
	// Size is the exact size of the result, in square pixels. It follows the aspect of
	// Data, so that scaling is enough. FPS and Duration are the result's frame rate and
	// length; both are 0 for an image.
	Size     catalog.Size
	FPS      int
	Duration time.Duration
	// Remaining is how long the run may take before it is stopped; 0 if that is not
	// known. An engine that cannot be done by then says so at once.
	Remaining time.Duration
	// PreviewEvery is the least time between two previews that are wanted while the
	// engine works; 0 wants none. An engine that has none, or for which they are not
	// cheap, sends none.
	PreviewEvery time.Duration
	// Thumbnails asks an engine that can make them on the way for thumbnails, and for the
	// poster of a video.
	Thumbnails bool
	// Free returns how many more bytes a server's result may put on the disk; nil means any
	// number.
	Free func() (int64, error)
	// Folder is an empty folder of this run's own for scratch files. It is
	// removed by the caller.
	Folder string
	// Output is the path at which to write the result: an MP4, or a PNG for an
	// image. It is inside Folder.
	Output string
}

// Progress is how far an edit is.
type Progress struct {
	// Fraction is 0 to 1.
	Fraction float64
	// Stage names what the engine is doing, such as "denoise".
	Stage string
	// Took is how long the stage took, in the reports that an engine that
	// measures its stages sends for each of them at the end; else 0.
	Took time.Duration
	// Preview is a small picture of what the result looks like so far, as a JPEG that
	// [CheckPreview] accepts; nil in reports without a new one. The engine does not
	// change it any more.
	Preview []byte
}

// Outcome is what an engine tells of an edit that it made, for the person who
// asked for it (docs/contract/jobs.md#engine-report).
type Outcome struct {
	// Engine names what made the result, such as "preview".
	Engine string
	// Understood names what the engine followed of the prompt, in its own words,
	// such as "watercolor". It is nil if the engine does not tell, and empty if it
	// followed nothing.
	Understood []string
	// Notice is what the person should know, such as which words were not
	// followed, in sentences; empty if there is nothing to say.
	Notice string
	// Thumbnails makes small pictures of what the engine left in the run's folder, if they
	// were asked for; nil if the engine made none on the way. Those who do not wait for them
	// call it once, while the next run is under way and the folder is there.
	Thumbnails func() Thumbnails
}

// Thumbnails are pictures of a result and of what was edited, each a JPEG of
// the size of thumbnails (docs/contract/jobs.md#thumbnails), and the poster of a video
// that is the result; nil for one that was not made.
type Thumbnails struct{ Result, Input, Poster []byte }

// Depicted is a file of which a picture is wanted: a thumbnail, or a poster.
type Depicted struct {
	Input
	// Poster asks for a poster. It is of the same time as the thumbnails that are asked
	// for with it.
	Poster bool
}

// Engine edits media. Run returns when Output is written completely, or with an
// error. When the context ends it stops all work, leaves no process behind and
// returns the context's error. The callback is called from one goroutine at a
// time and must not block.
//
// Errors: [*Error]; any other is taken for a retryable engine_error.
type Engine interface {
	Run(ctx context.Context, spec Spec, progress func(Progress)) (Outcome, error)
}

// Error is why an edit failed.
type Error struct {
	// Code is job.InvalidInput when the input is to blame, else job.EngineError.
	Code job.Code
	// Message is for the person who sent the job.
	Message string
	// Retryable is true if another run of the same spec may succeed.
	Retryable bool
	// Err is the cause, for the log only.
	Err error
}

// Error returns the message and, for the log, the cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// InvalidInput returns the error of an input that cannot be edited.
func InvalidInput(cause error, format string, args ...any) *Error {
	return &Error{Code: job.InvalidInput, Message: fmt.Sprintf(format, args...), Err: cause}
}

// AsError returns the engine error in err's chain, and for any other error the
// retryable engine_error that it is taken for.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: job.EngineError, Message: job.EngineFailedMessage, Retryable: true, Err: err}
}
