package realtime

import (
	"context"

	"cutroom/shared/domain/catalog"
)

const imageSide = 384

type Pictures interface {
	// Still decodes the first frame of a file in a separate process with limited resources. The pixels are as in
	// engine.ReferenceImage. Neither the width nor the height exceeds side.
	//
	// Errors: fault.Invalid if it cannot be decoded; fault.Unavailable.
	Still(ctx context.Context, data []byte, mime string, side int) (pixels []byte, size catalog.Size, err error)
}
