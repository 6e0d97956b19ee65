package engine

import (
	"context"
	"image"

	"cutroom/shared/domain/catalog"
)

type LiveEngine interface {
	// Open returns an editor for one session. Errors: fault.Unavailable if the engine has no
	// capacity for another session.
	Open(ctx context.Context, m *catalog.Model) (LiveEditor, error)
}

// LiveEditor edits a session's frames, one at a time, with the latest prompt and image. SetPrompt and SetImage
// are never called concurrently with each other, but may be called while an Edit runs. They affect the next Edit.
type LiveEditor interface {
	// SetPrompt returns how the engine understood the prompt; an empty prompt requests nothing. Errors:
	// fault.Invalid if the engine rejects the prompt, in which case nothing changes; fault.Unavailable.
	SetPrompt(ctx context.Context, prompt string) (Outcome, error)
	// SetImage sets the reference image, or removes it if image is nil. It returns how the engine understood the
	// image. Errors: as for SetPrompt. An engine without image support rejects every image.
	SetImage(ctx context.Context, image *ReferenceImage) (Outcome, error)
	// Edit returns the edited frame, which has the input's range and a size that the engine chooses. If there is
	// nothing to change, it returns the input itself. Otherwise the result is 4:2:0, is owned by the editor, and
	// is valid until the next Edit. The editor does not modify the input and keeps no reference to it.
	//
	// Errors: fault.Invalid if the frame cannot be edited, for example because it is too large.
	Edit(ctx context.Context, picture *Picture) (*Picture, error)
	// No other method may be running, and none may be called afterwards.
	Close()
}

// Picture is a decoded frame of live video.
type Picture struct {
	// It holds luma, and chroma (BT.601) with any subsampling. The rectangle starts at (0, 0).
	image.YCbCr
	// Narrow means video range: luma from 16 to 235 and chroma from 16 to 240. Otherwise the
	// values have the full range, as in a JPEG.
	Narrow bool
}

// LiveOffloaded is implemented by editors that run on other hardware, so that they need not wait for a turn on this
// machine's CPUs.
type LiveOffloaded interface {
	Offloaded() bool
}

// LivePlanner is implemented by editors that prepare the prompt for each new frame size. The preparation is slow.
type LivePlanner interface {
	// Plans reports whether editing the picture would first prepare the prompt. It must not be
	// called while an Edit runs.
	Plans(picture *Picture) bool
}

type ReferenceImage struct {
	Size catalog.Size
	// Pixels holds rows from the top: red, green, blue and alpha, one byte each, not premultiplied.
	Pixels []byte
}
