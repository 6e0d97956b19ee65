package realtime

import (
	"context"

	"cutroom/shared/domain/catalog"
)

// imageSide is the longer side of a reference image as editors receive it, in
// pixels: enough to see its colours and the garment that it shows.
const imageSide = 384

// Pictures decodes reference images.
type Pictures interface {
	// Still returns the first picture of a file of the type, its pixels as in
	// engine.ReferenceImage, its longer side at most side. The decoder is a
	// program of its own, with limits, so nothing that the bytes do to it
	// reaches this process.
	//
	// Errors: the context's; fault.Invalid when it cannot be decoded;
	// fault.Unavailable.
	Still(ctx context.Context, data []byte, mime string, side int) (pixels []byte, size catalog.Size, err error)
}
