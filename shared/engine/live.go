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

// LiveEditor edits the frames of one session, by the prompt and the image that
// were set last. Edits are asked for one at a time; SetPrompt and SetImage are
// called one at a time too, but also while an Edit runs. What they set holds from
// the next Edit on.
type LiveEditor interface {
	// SetPrompt sets the prompt; an empty one asks for nothing.
	SetPrompt(prompt string)
	// SetImage sets the reference image, or takes it away when it is nil.
	SetImage(image *ReferenceImage)
	// Edit returns the edited frame, a JPEG as the frame is. It keeps neither.
	//
	// Errors: fault.Invalid when the frame cannot be decoded; the context's.
	Edit(ctx context.Context, frame []byte) ([]byte, error)
	// Close releases what the editor holds. No other call runs or follows.
	Close()
}

// ReferenceImage is a reference image, decoded and made small.
type ReferenceImage struct {
	Size catalog.Size
	// Pixels are rows from the top, four bytes a pixel: red, green, blue and alpha,
	// which is not multiplied into the others.
	Pixels []byte
}
