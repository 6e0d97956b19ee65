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
	SetImage(image *Image)
	// Edit gives the edited frame, a JPEG as the frame is. It keeps neither.
	//
	// Errors: fault.Invalid when the frame cannot be decoded; the context's.
	Edit(ctx context.Context, frame []byte) ([]byte, error)
	// Close releases what the editor holds. No other call runs or follows.
	Close()
}

// imageSide is the longer side of a reference image as editors get it, in pixels:
// they look for colours and for the garment that it shows.
const imageSide = 384

// Image is a reference image, decoded and made small.
type Image struct {
	Size catalog.Size
	// Pixels are rows from the top, four bytes a pixel: red, green, blue and alpha,
	// which is not multiplied into the others.
	Pixels []byte
}

// Pictures decodes reference images.
type Pictures interface {
	// Still returns the first picture of a file of the type, as an [Image] has it,
	// its longer side at most as long. Nothing that the bytes do to the decoder
	// reaches this process: it is a program of its own, with bounds.
	//
	// Errors: the context's; fault.Invalid when it cannot be decoded;
	// fault.Unavailable.
	Still(ctx context.Context, data []byte, mime string, side int) (pixels []byte, size catalog.Size, err error)
}
