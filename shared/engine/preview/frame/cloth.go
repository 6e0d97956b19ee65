package frame

import (
	"image"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/garment"
	"cutroom/shared/engine/preview/look"
)

// layCloth works like package preview's. The clothes' colors are taken from the first frame with a
// face.
func (p *program) layCloth(asked request, seed uint32) func(w *workspace) step {
	var reference *garment.Reference
	if asked.image != nil {
		reference = &garment.Reference{Size: asked.image.size, Pixels: opaque(asked.image.pixels)}
	}
	cloth := rasterOf(garment.Cloth(reference, asked.prompt, seed, p.size))
	newTable(look.Variation(seed)).apply(cloth)
	return func(*workspace) step {
		worn := wearing{program: p, cloth: cloth, body: make([]uint8, p.size.Width*p.size.Height)}
		return worn.step
	}
}

// The face search is repeated at this interval, because people move.
const findEvery = 400 * time.Millisecond

type wearing struct {
	program *program
	cloth   raster
	// body marks the clothes. It is empty until a face has been found. Their colors are learned
	// once.
	body          []uint8
	colors, shade *table
	next          time.Duration
}

func (c *wearing) step(w *workspace, at time.Duration) {
	if at >= c.next {
		c.next = at + findEvery
		c.find(w)
	}
	if c.colors == nil {
		w.notice = noFace
		return
	}
	c.wear(w)
}

// noFace is the notice as long as no face has been found.
const noFace = "No face shows from the front, so that nothing is worn. Look at the camera, with the clothes in view."

func (c *wearing) find(w *workspace) {
	small := w.shrunk(within(c.program.size, faceSide))
	pixels := interleaved(*small)
	face, found, err := garment.FindFace(pixels, small.size)
	if err != nil || !found {
		return // the person may look away for a moment
	}
	if c.colors == nil {
		clothes := garment.Find([]garment.Shot{{Pixels: pixels, Face: face}}, small.size)
		c.colors, c.shade = newTable(clothes.Table), newTable(clothes.Shade())
	}
	width := c.program.size.Width
	for i := range c.body {
		x, y := (float64(i%width)+0.5)/float64(width), (float64(i/width)+0.5)/float64(width)
		c.body[i] = uint8(face.Torso(x, y)*255 + 0.5)
	}
}

// The longer side for the face search, in pixels. Finished videos use a larger one, but live frames
// cannot wait.
const faceSide = 240

func (c *wearing) wear(w *workspace) {
	p := c.program
	small := w.shrunk(p.part(2))
	c.colors.apply(*small)
	// Smoothing closes gaps caused by noise and folds.
	mask := small.planes[0]
	w.plane = grown(w.plane, len(mask))
	median(w.plane, mask, small.size.Width, small.size.Height, p.pixels(0.007))
	w.blur.box(w.plane, small.size.Width, small.size.Height, p.pixels(0.0015))
	w.other.sized(p.size)
	full := w.other.planes[1]
	w.scaler(small.size, p.size).scale(full, w.plane, small.size.Width)
	folds := w.other.planes[0]
	w.picture.gray(folds)
	// A table of grays needs only one lookup per luma value.
	var levels [256]uint8
	ramp := newRaster(catalog.Size{Width: 256, Height: 1})
	for level := range 256 {
		for channel := range ramp.planes {
			ramp.planes[channel][level] = uint8(level)
		}
	}
	c.shade.apply(ramp)
	copy(levels[:], ramp.planes[0])
	for channel, plane := range w.picture.planes {
		worn := c.cloth.planes[channel][:len(plane)]
		for i, v := range plane {
			share := int32(multiplied(full[i], c.body[i]))
			if share == 0 {
				continue
			}
			dressed := int32(clip8(int32(levels[folds[i]]) + int32(worn[i]) - 128))
			plane[i] = uint8(int32(v) + ((dressed-int32(v))*share+127)/255)
		}
	}
}

func opaque(pixels []byte) []byte {
	four := make([]byte, 0, len(pixels)/3*4)
	for i := 0; i+2 < len(pixels); i += 3 {
		four = append(four, pixels[i], pixels[i+1], pixels[i+2], 255)
	}
	return four
}

func rasterOf(from image.Image) raster {
	size := from.Bounds().Size()
	w := newWorkspace()
	w.load(from, catalog.Size{Width: size.X, Height: size.Y}, fullRange)
	return w.picture
}
