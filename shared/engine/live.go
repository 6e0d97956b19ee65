package engine

import (
	"context"
	"image"

	"cutroom/shared/domain/catalog"
)

type LiveEngine interface {
	// Open returns the editor of one session. Errors: fault.Unavailable if the engine has no
	// capacity for another session.
	Open(ctx context.Context, m *catalog.Model) (LiveEditor, error)
}

// LiveEditor edits a session's frames, one at a time, with the last prompt and image. SetPrompt and
// SetImage are called one at a time, even while an Edit runs, and affect the next one.
type LiveEditor interface {
	// SetPrompt returns the engine's reading of the prompt; an empty prompt requests nothing.
	// Errors: fault.Invalid if the engine rejects the prompt, which changes nothing;
	// fault.Unavailable.
	SetPrompt(ctx context.Context, prompt string) (Outcome, error)
	// SetImage sets the reference image, or removes it if image is nil. It returns the engine's
	// reading of the image. Errors: as SetPrompt. An engine without image support rejects every
	// image.
	SetImage(ctx context.Context, image *ReferenceImage) (Outcome, error)
	// Edit returns the edited frame, which has the input's range and a size that the engine
	// chooses. If there is nothing to change, it is the input itself. Otherwise it is 4:2:0,
	// belongs to the editor, and is valid until the next Edit. The editor does not change the
	// input, and keeps no reference to it.
	//
	// Errors: fault.Invalid if the frame cannot be edited, for example because it is too large.
	Edit(ctx context.Context, picture *Picture) (*Picture, error)
	// No other call may run or follow.
	Close()
}

// Picture is a raw frame of live video, decoded by a transport.
type Picture struct {
	// Luma, and chroma (BT.601) subsampled in any way. The rectangle begins at (0, 0).
	image.YCbCr
	// Narrow means video range: luma from 16 to 235 and chroma from 16 to 240. Otherwise the
	// values have the full range, as in a JPEG.
	Narrow bool
}

// LiveNoticer is implemented by editors with notices, such as that nothing can be edited.
type LiveNoticer interface {
	// Notice is about the last edited frame, or "". It may be called even while an Edit runs.
	Notice() string
}

// LiveOffloaded is for editors on other hardware: they need no turn on this machine's processors.
type LiveOffloaded interface {
	Offloaded() bool
}

// LivePlanner is for editors that prepare the prompt for each frame size, which takes long.
type LivePlanner interface {
	// Plans reports whether an edit of the picture prepares the prompt. No Edit may run.
	Plans(picture *Picture) bool
}

type ReferenceImage struct {
	Size catalog.Size
	// Rows from the top: red, green, blue and alpha, a byte each, not premultiplied.
	Pixels []byte
}
