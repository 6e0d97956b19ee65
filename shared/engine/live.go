package engine

import (
	"context"

	"cutroom/shared/domain/catalog"
)

// LiveEngine edits live pictures.
type LiveEngine interface {
	// Open returns the editor of one session.
	Open(ctx context.Context, m *catalog.Model) (LiveEditor, error)
}

// LiveEditor edits the frames of one session by the prompt and the image that
// were set last. One Edit is called at a time; SetPrompt and SetImage are
// called one at a time too, but also while an Edit runs. They take effect with
// the next Edit.
type LiveEditor interface {
	// SetPrompt sets the prompt; an empty one asks for nothing. It returns what the
	// engine follows from now on.
	SetPrompt(prompt string) Outcome
	// SetImage sets the reference image, or removes it if image is nil. It returns
	// what the engine follows from now on.
	SetImage(image *ReferenceImage) Outcome
	// Edit returns the edited frame, a JPEG like the input. It keeps a
	// reference to neither.
	//
	// Errors: fault.Invalid when the frame cannot be decoded; the context's.
	Edit(ctx context.Context, frame []byte) ([]byte, error)
	// Close releases what the editor holds. No other call runs or follows.
	Close()
}

// LiveNoticer is implemented by editors that have something to say of the frames
// themselves, such as that nothing in them can be edited.
type LiveNoticer interface {
	// Notice returns what is to be said of the frame that was edited last, empty if
	// nothing is. It is called at any time, also while an Edit runs.
	Notice() string
}

// ReferenceImage is a reference image, decoded and scaled down.
type ReferenceImage struct {
	Size catalog.Size
	// Pixels are rows from the top, four bytes a pixel: red, green, blue and
	// alpha, not premultiplied.
	Pixels []byte
}
