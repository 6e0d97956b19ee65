package engine

import (
	"context"
	"image"

	"cutroom/shared/domain/catalog"
)

// LiveEngine edits live pictures.
type LiveEngine interface {
	// Open returns the editor of one session.
	//
	// Errors: fault.Unavailable if the engine can serve no further session now; the
	// context's.
	Open(ctx context.Context, m *catalog.Model) (LiveEditor, error)
}

// LiveEditor edits the frames of one session by the prompt and the image that
// were set last. One Edit is called at a time; SetPrompt and SetImage are
// called one at a time too, but also while an Edit runs. They take effect with
// the next Edit.
type LiveEditor interface {
	// SetPrompt sets the prompt; an empty one asks for nothing. It returns what the
	// engine follows from now on.
	//
	// Errors: fault.Invalid if the engine refuses it, which changes nothing;
	// fault.Unavailable; the context's.
	SetPrompt(ctx context.Context, prompt string) (Outcome, error)
	// SetImage sets the reference image, or removes it if image is nil. It returns
	// what the engine follows from now on.
	//
	// Errors: those of SetPrompt. An engine that takes no images refuses each.
	SetImage(ctx context.Context, image *ReferenceImage) (Outcome, error)
	// Edit returns the edited picture, which has the range of the input, and the
	// size that the engine makes of it. It is the input itself if there is nothing
	// to change; else it is 4:2:0 and the editor's, valid until the next Edit. The
	// editor does not change the input, and keeps no reference to it.
	//
	// Errors: fault.Invalid when the picture cannot be edited, such as one that is
	// too large; the context's.
	Edit(ctx context.Context, picture *Picture) (*Picture, error)
	// Close releases what the editor holds. No other call runs or follows.
	Close()
}

// Picture is a raw picture of live video. Transports make it of what they carry.
type Picture struct {
	// YCbCr has the planes: luma, and chroma (BT.601) subsampled in any way. Its
	// rectangle begins at (0, 0).
	image.YCbCr
	// Narrow is true if the values have the range of video, luma from 16 to 235 and
	// chroma from 16 to 240. Otherwise they have the full range, as in a JPEG.
	Narrow bool
}

// LiveNoticer is implemented by editors that have something to say of the frames
// themselves, such as that nothing in them can be edited.
type LiveNoticer interface {
	// Notice returns what is to be said of the frame that was edited last, empty if
	// nothing is. It is called at any time, also while an Edit runs.
	Notice() string
}

// LiveOffloaded is implemented by editors whose work is done by other hardware, such as a
// GPU behind an engine server: they take no turn on the processors of this machine.
type LiveOffloaded interface {
	// Offloaded reports whether it is.
	Offloaded() bool
}

// ReferenceImage is a reference image, decoded and scaled down.
type ReferenceImage struct {
	Size catalog.Size
	// Pixels are rows from the top, four bytes a pixel: red, green, blue and
	// alpha, not premultiplied.
	Pixels []byte
}
