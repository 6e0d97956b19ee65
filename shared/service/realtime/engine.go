package realtime

import (
	"context"

	"cutroom/shared/domain/catalog"
)

// Engine edits live pictures.
type Engine interface {
	// Open makes the editor of one session.
	Open(ctx context.Context, m *catalog.Model) (Editor, error)
}

// Editor edits the frames of one session, by the prompt and the image that were
// set last. Edits are asked for one at a time; SetPrompt and SetImage are called
// one at a time too, but also while an Edit runs. What they set holds from the
// next Edit on.
type Editor interface {
	// SetPrompt sets the prompt; an empty one asks for nothing.
	SetPrompt(prompt string)
	// SetImage sets the reference image, or takes it away when it is nil.
	//
	// Errors: fault.Invalid when it cannot be decoded.
	SetImage(ctx context.Context, image *Image) error
	// Edit gives the edited frame, a JPEG as the frame is. It keeps neither.
	//
	// Errors: fault.Invalid when the frame cannot be decoded; the context's.
	Edit(ctx context.Context, frame []byte) ([]byte, error)
	// Close releases what the editor holds. No other call runs or follows.
	Close()
}

// Image is a reference image as it was sent.
type Image struct {
	// MIME is the type told by the content.
	MIME string
	Data []byte
}
