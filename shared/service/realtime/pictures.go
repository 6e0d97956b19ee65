package realtime

import (
	"context"

	"cutroom/shared/domain/catalog"
)

// imageSide is the longer side of a reference image as editors get it, in pixels:
// they look for colours and for the garment that it shows.
const imageSide = 384

// Pictures decodes reference images.
type Pictures interface {
	// Still returns the first picture of a file of the type, its pixels as
	// engine.ReferenceImage has them, its longer side at most as long. Nothing that
	// the bytes do to the decoder reaches this process: it is a program of its own,
	// with bounds.
	//
	// Errors: the context's; fault.Invalid when it cannot be decoded;
	// fault.Unavailable.
	Still(ctx context.Context, data []byte, mime string, side int) (pixels []byte, size catalog.Size, err error)
}
