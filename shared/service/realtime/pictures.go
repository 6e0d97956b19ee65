package realtime

import (
	"context"

	"cutroom/shared/domain/catalog"
)

const imageSide = 384

type Pictures interface {
	// Still returns the first frame of a file in a separate, limited process, with pixels as in
	// engine.ReferenceImage and a longer side of at most side.
	//
	// Errors: fault.Invalid if it cannot be decoded; fault.Unavailable.
	Still(ctx context.Context, data []byte, mime string, side int) (pixels []byte, size catalog.Size, err error)
}
