package frame

import (
	"image"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/garment"
	"cutroom/shared/engine/preview/look"
)

// dress returns the step that puts cloth on the subject, as package preview
// does for finished videos. The clothes' colours are learned from the first
// frame.
func (p *program) dress(asked request, seed uint32) func(w *workspace) step {
	var reference *garment.Reference
	if asked.image != nil {
		reference = &garment.Reference{Size: asked.image.size, Pixels: opaque(asked.image.pixels)}
	}
	cloth := rasterOf(garment.Cloth(reference, asked.prompt, seed, p.size))
	newTable(look.Variation(seed)).apply(cloth)
	body := make([]uint8, p.size.Width*p.size.Height)
	for i := range body {
		x, y := (float64(i%p.size.Width)+0.5)/float64(p.size.Width), (float64(i/p.size.Width)+0.5)/float64(p.size.Height)
		body[i] = uint8(garment.Body(x, y)*255 + 0.5)
	}
	return func(w *workspace) step {
		small := w.shrunk(within(p.size, sampleSide))
		clothes := garment.Find(interleaved(*small), small.size)
		return p.wear(cloth, body, newTable(clothes.Table), newTable(clothes.Shade()))
	}
}

// wear lays the cloth where the clothes' colours are and keeps their folds.
func (p *program) wear(cloth raster, body []uint8, colors, shade *table) step {
	return func(w *workspace, _ time.Duration) {
		small := w.shrunk(p.part(2))
		colors.apply(*small)
		// Smoothing closes the gaps that noise and folds leave.
		mask := small.planes[0]
		w.plane = grown(w.plane, len(mask))
		median(w.plane, mask, small.size.Width, small.size.Height, p.pixels(0.007))
		w.blur.box(w.plane, small.size.Width, small.size.Height, p.pixels(0.0015))
		w.other.sized(p.size)
		full := w.other.planes[1]
		w.scaler(small.size, p.size).scale(full, w.plane, small.size.Width)
		folds := w.other.planes[0]
		w.picture.gray(folds)
		// A table of greys needs only one lookup for each luma.
		var levels [256]uint8
		ramp := newRaster(catalog.Size{Width: 256, Height: 1})
		for level := range 256 {
			for channel := range ramp.planes {
				ramp.planes[channel][level] = uint8(level)
			}
		}
		shade.apply(ramp)
		copy(levels[:], ramp.planes[0])
		for channel, plane := range w.picture.planes {
			worn := cloth.planes[channel][:len(plane)]
			for i, v := range plane {
				share := int32(multiplied(full[i], body[i]))
				if share == 0 {
					continue
				}
				dressed := int32(clip8(int32(levels[folds[i]]) + int32(worn[i]) - 128))
				plane[i] = uint8(int32(v) + ((dressed-int32(v))*share+127)/255)
			}
		}
	}
}

// opaque adds a fourth byte to pixels of three bytes.
func opaque(pixels []byte) []byte {
	four := make([]byte, 0, len(pixels)/3*4)
	for i := 0; i+2 < len(pixels); i += 3 {
		four = append(four, pixels[i], pixels[i+1], pixels[i+2], 255)
	}
	return four
}

// rasterOf returns an opaque picture in planes.
func rasterOf(from image.Image) raster {
	size := from.Bounds().Size()
	w := newWorkspace()
	w.load(from, catalog.Size{Width: size.X, Height: size.Y})
	return w.picture
}
