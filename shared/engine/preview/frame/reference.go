package frame

import (
	"bytes"
	"image"
	// The formats that reference images may have.
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"time"

	_ "golang.org/x/image/webp"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/service/realtime"
)

const (
	// maxReference is how large a reference image may be, in pixels
	// (decisions.md, "Models").
	maxReference = 50_000_000
	// referenceSide is the longer side of what is kept of it, in pixels.
	referenceSide = 384
	// sampleSide is the longer side of what is measured, in pixels.
	sampleSide = 160
)

// reference is what is kept of a reference image: three bytes a pixel.
type reference struct {
	size   catalog.Size
	pixels []byte
}

// newReference decodes a reference image and makes it small.
//
// Errors: fault.Invalid.
func newReference(sent *realtime.Image) (*reference, error) {
	header, _, err := image.DecodeConfig(bytes.NewReader(sent.Data))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "The image cannot be decoded; JPEG, PNG, WebP and GIF can be.")
	}
	if header.Width <= 0 || header.Height <= 0 || header.Width > maxReference/header.Height {
		return nil, fault.New(fault.Invalid, "The image has more than 50 megapixels.")
	}
	decoded, _, err := image.Decode(bytes.NewReader(sent.Data))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "The image cannot be decoded; JPEG, PNG, WebP and GIF can be.")
	}
	size := within(catalog.Size{Width: header.Width, Height: header.Height}, referenceSide)
	w := newWorkspace()
	w.load(decoded, size)
	return &reference{size: size, pixels: interleaved(w.picture)}, nil
}

// within gives the size with the longer side at most as long.
func within(size catalog.Size, side int) catalog.Size {
	longer := max(size.Width, size.Height)
	if longer <= side {
		return size
	}
	return catalog.Size{Width: max(1, size.Width*side/longer), Height: max(1, size.Height*side/longer)}
}

// interleaved gives a picture as three bytes a pixel.
func interleaved(r raster) []byte {
	pixels := make([]byte, 0, 3*len(r.planes[0]))
	for i := range r.planes[0] {
		pixels = append(pixels, r.planes[0][i], r.planes[1][i], r.planes[2][i])
	}
	return pixels
}

// transfer gives the picture in the workspace, and those that follow, the colours
// of the image: the first one stands for all, so that the colours keep still.
func (r *reference) transfer(w *workspace) step {
	small := w.shrunk(within(w.picture.size, sampleSide))
	t := newTable(look.Transfer(look.Measure(interleaved(*small)), look.Measure(r.pixels)))
	return func(w *workspace, _ time.Duration) { t.apply(w.picture) }
}
