package engine

import (
	"fmt"

	"cutroom/shared/domain/media"
)

const (
	// In bytes.
	MaxPreview = 128 << 10
	// PreviewSide limits a preview's longer side, in pixels.
	PreviewSide = 512

	// These limit a poster, in bytes and in pixels (docs/contract/jobs.md#thumbnails).
	MaxPoster  = 500_000
	PosterSide = 1280
)

// CheckPreview does not decode the picture, because a decoder would add 50 KB to each function.
func CheckPreview(preview []byte) error { return check("preview", preview, MaxPreview, PreviewSide) }
func CheckPoster(poster []byte) error   { return check("poster", poster, MaxPoster, PosterSide) }

func check(what string, picture []byte, most, side int) error {
	if len(picture) > most {
		return fmt.Errorf("engine: a %s of %d bytes", what, len(picture))
	}
	header, ok := media.InspectJPEG(picture)
	if !ok {
		return fmt.Errorf("engine: a %s that is not a JPEG", what)
	}
	if max(header.Width, header.Height) > side {
		return fmt.Errorf("engine: a %s of %dx%d pixels", what, header.Width, header.Height)
	}
	return nil
}
