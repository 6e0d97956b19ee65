package frame

import (
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/look"
)

// sampleSide is the length, in pixels, to which a picture's longer side is scaled before its colors are measured.
const sampleSide = 160

// reference is a stored reference image with three bytes per pixel.
type reference struct {
	size   catalog.Size
	pixels []byte
}

// newReference composites an image on white, as finished edits do. It returns nil if there is no image.
func newReference(sent *engine.ReferenceImage) *reference {
	if sent == nil {
		return nil
	}
	r := &reference{size: sent.Size, pixels: make([]byte, 0, len(sent.Pixels)/4*3)}
	for i := 0; i+3 < len(sent.Pixels); i += 4 {
		alpha := uint32(sent.Pixels[i+3])
		for _, v := range sent.Pixels[i : i+3] {
			r.pixels = append(r.pixels, uint8((uint32(v)*alpha+255*(255-alpha)+127)/255))
		}
	}
	return r
}

func within(size catalog.Size, side int) catalog.Size {
	longer := max(size.Width, size.Height)
	if longer <= side {
		return size
	}
	return catalog.Size{Width: max(1, size.Width*side/longer), Height: max(1, size.Height*side/longer)}
}

func interleaved(r raster) []byte {
	pixels := make([]byte, 0, 3*len(r.planes[0]))
	for i := range r.planes[0] {
		pixels = append(pixels, r.planes[0][i], r.planes[1][i], r.planes[2][i])
	}
	return pixels
}

// transfer returns a step that matches colors to the reference image. The step is computed from the workspace's
// current picture and applied to all later pictures, so that the colors stay stable.
func (r *reference) transfer(w *workspace) step {
	small := w.shrunk(within(w.picture.size, sampleSide))
	t := newTable(look.Transfer(look.Measure(interleaved(*small)), look.Measure(r.pixels)))
	return func(w *workspace, _ time.Duration) { t.apply(w.picture) }
}
