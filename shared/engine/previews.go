package engine

import (
	"fmt"

	"cutroom/shared/domain/media"
)

const (
	// MaxPreview is the size of a preview at most, in bytes.
	MaxPreview = 128 << 10
	// PreviewSide is the longer side of a preview at most, in pixels.
	PreviewSide = 512

	// MaxPoster is the size of a poster at most, in bytes, and PosterSide its longer side,
	// in pixels (docs/contract/jobs.md#thumbnails).
	MaxPoster  = 500_000
	PosterSide = 1280
)

// CheckPreview returns why a preview cannot be shown; nil if it is a JPEG within
// bounds. Nothing is decoded: functions link this package, and a decoder is 50 KB of each.
func CheckPreview(preview []byte) error { return check("preview", preview, MaxPreview, PreviewSide) }

// CheckPoster returns why a picture is no poster, as CheckPreview does of a preview.
func CheckPoster(poster []byte) error { return check("poster", poster, MaxPoster, PosterSide) }

func check(what string, picture []byte, most, side int) error {
	if len(picture) > most {
		return fmt.Errorf("engine: a %s of %d bytes", what, len(picture))
	}
	header, ok := media.InspectJPEG(picture)
	if !ok {
		return fmt.Errorf("engine: a %s that is no JPEG", what)
	}
	if max(header.Width, header.Height) > side {
		return fmt.Errorf("engine: a %s of %dx%d pixels", what, header.Width, header.Height)
	}
	return nil
}
