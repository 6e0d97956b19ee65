package realtime

import (
	"context"

	"cutroom/shared/domain/catalog"
)

// imageSide is the longer side of a reference image in pixels, enough for colours and garments.
const imageSide = 384

type Pictures interface {
	// Still returns the first frame of a file, with pixels as in engine.ReferenceImage and a longer
	// side of at most side. The decoder is a separate, limited program, so the bytes cannot harm this
	// process.
	//
	// Errors: fault.Invalid if it cannot be decoded; fault.Unavailable.
	Still(ctx context.Context, data []byte, mime string, side int) (pixels []byte, size catalog.Size, err error)
}
