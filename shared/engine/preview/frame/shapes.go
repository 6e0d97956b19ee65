package frame

import (
	"image"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
)

// The operations that change shapes: smoothing, patches, blocks, lines.

// chroma is a picture in luma and chroma at half size (4:2:0), the form in which
// smoothing is cheap.
type chroma struct{ image.YCbCr }

func (c *chroma) sized(size catalog.Size) {
	half := catalog.Size{Width: (size.Width + 1) / 2, Height: (size.Height + 1) / 2}
	c.Y = grown(c.Y, size.Width*size.Height)
	c.Cb, c.Cr = grown(c.Cb, half.Width*half.Height), grown(c.Cr, half.Width*half.Height)
	c.YStride, c.CStride = size.Width, half.Width
	c.SubsampleRatio = image.YCbCrSubsampleRatio420
	c.Rect = image.Rect(0, 0, size.Width, size.Height)
}

// planes calls do with each plane and its size.
func (c *chroma) planes(do func(plane []uint8, width, height int)) {
	size := c.Rect.Size()
	do(c.Y, size.X, size.Y)
	do(c.Cb, c.CStride, len(c.Cb)/c.CStride)
	do(c.Cr, c.CStride, len(c.Cr)/c.CStride)
}

// shrunk sets the small picture from the whole one.
func (w *workspace) shrunk(size catalog.Size) *raster {
	w.small.sized(size)
	if size == w.picture.size {
		w.small.copyFrom(w.picture)
		return &w.small
	}
	s := w.scaler(w.picture.size, size)
	for i := range w.small.planes {
		s.scale(w.small.planes[i], w.picture.planes[i], w.picture.size.Width)
	}
	return &w.small
}

// enlarge sets a picture of the whole size from the small one.
func (w *workspace) enlarge(to raster) {
	if w.small.size == to.size {
		to.copyFrom(w.small)
		return
	}
	s := w.scaler(w.small.size, to.size)
	for i := range to.planes {
		s.scale(to.planes[i], w.small.planes[i], w.small.size.Width)
	}
}

// softening evens out a plane of luma or chroma.
type softening func(w *workspace, plane []uint8, width, height int)

// softenings returns those of the first operations that even out at half size: patches,
// and what is smooth over so many pixels that it hides the size. Sharing the size spares
// all but the first to reduce the picture.
func (p *program) softenings(ops []look.Op) (all []softening) {
	for _, op := range ops {
		switch op := op.(type) {
		case look.Flatten:
			all = append(all, p.flatten(op))
		case look.Smooth:
			if p.length(op.Radius) < 2 {
				return all
			}
			all = append(all, smooth(p.length(op.Radius)/2, op.Range))
		default:
			return all
		}
	}
	return all
}

func smooth(radius, within float64) softening {
	return func(w *workspace, plane []uint8, width, height int) {
		w.bilateral.smooth(plane, width, height, radius, within)
	}
}

func (p *program) flatten(op look.Flatten) softening {
	radius := p.pixels(op.Radius / 2)
	return func(w *workspace, plane []uint8, width, height int) {
		w.plane = grown(w.plane, len(plane))
		median(w.plane, plane, width, height, radius)
		copy(plane, w.plane)
	}
}

// soften evens out the picture, reduced by a factor.
func (p *program) soften(factor int, all ...softening) step {
	return func(w *workspace, _ time.Duration) {
		small := w.shrunk(p.part(factor))
		w.colors.sized(small.size)
		small.split(&w.colors.YCbCr, fullRange)
		w.colors.planes(func(plane []uint8, width, height int) {
			for _, do := range all {
				do(w, plane, width, height)
			}
		})
		small.join(&w.colors.YCbCr, fullRange)
		w.enlarge(w.picture)
	}
}

// pixelate makes blocks of their mean colour.
func pixelate(r raster, block int) {
	width, height := r.size.Width, r.size.Height
	for _, plane := range r.planes {
		for y0 := 0; y0 < height; y0 += block {
			rows := min(block, height-y0)
			for x0 := 0; x0 < width; x0 += block {
				columns := min(block, width-x0)
				sum := 0
				for y := range rows {
					for _, v := range plane[(y0+y)*width+x0:][:columns] {
						sum += int(v)
					}
				}
				mean := uint8(sum / (rows * columns))
				for y := range rows {
					line := plane[(y0+y)*width+x0:][:columns]
					for x := range line {
						line[x] = mean
					}
				}
			}
		}
	}
}

func (p *program) clarity(op look.Clarity) step {
	factor := blurFactor(p.length(op.Radius))
	radius := p.pixels(op.Radius / float64(factor))
	// The weights of the picture and of its blur, of 1<<10.
	sharp, wide := int32((1+op.Amount)*(1<<10)+0.5), int32(op.Amount*(1<<10)+0.5)
	return func(w *workspace, _ time.Duration) {
		small := w.shrunk(p.part(factor))
		for _, plane := range small.planes {
			w.blur.box(plane, small.size.Width, small.size.Height, radius)
		}
		w.other.sized(p.size)
		w.enlarge(w.other)
		for i, plane := range w.picture.planes {
			blurred := w.other.planes[i][:len(plane)]
			for at, v := range plane {
				plane[at] = clip8((int32(v)*sharp - int32(blurred[at])*wide + 1<<9) >> 10)
			}
		}
	}
}

func (p *program) lines(op look.Lines) step {
	var biased [256]uint8
	bias := 255 * look.LinesBias
	for v := range biased {
		biased[v] = uint8((float64(v)+bias)/(255+bias)*255 + 0.5)
	}
	// Inks give what to multiply a channel with, by the ratio to the surroundings.
	var inks [3][256]uint8
	for v := range 256 {
		share := min(max((float64(v)/255-op.From)/(op.To-op.From), 0), 1)
		curve := share * share * (3 - 2*share)
		for channel, ink := range op.Ink {
			inks[channel][v] = uint8(255*(ink+(1-ink)*curve) + 0.5)
		}
	}
	// Ratios are rounded as they are looked up: 255 x fine / wide.
	var inverse [256]uint32
	for v := 1; v < 256; v++ {
		inverse[v] = (255 << 16) / uint32(v)
	}
	radius := p.pixels(op.Width)
	var fill *table
	if op.Fill != nil {
		fill = newTable(op.Fill)
	}
	return func(w *workspace, _ time.Duration) {
		pixels := p.size.Width * p.size.Height
		w.other.sized(p.size)
		fine, wide := w.other.planes[0], w.other.planes[1]
		w.picture.gray(fine)
		for i, v := range fine {
			fine[i] = biased[v]
		}
		copy(wide, fine)
		w.blur.box(wide, p.size.Width, p.size.Height, radius)
		if fill != nil {
			fill.apply(w.picture)
		}
		red, green, blue := w.picture.planes[0][:pixels], w.picture.planes[1][:pixels], w.picture.planes[2][:pixels]
		for i, v := range fine {
			ratio := min((uint32(v)*inverse[wide[i]])>>16, 255)
			if wide[i] == 0 || ratio == 255 && inks[0][255] == 255 && inks[1][255] == 255 && inks[2][255] == 255 {
				continue
			}
			red[i] = multiplied(red[i], inks[0][ratio])
			green[i] = multiplied(green[i], inks[1][ratio])
			blue[i] = multiplied(blue[i], inks[2][ratio])
		}
	}
}

// multiplied is a x b of 255, rounded down.
func multiplied(a, b uint8) uint8 {
	v := uint32(a) * uint32(b)
	return uint8((v + 1 + v>>8) >> 8)
}

// blurFactor is by how much a picture may shrink before it is blurred over a
// number of pixels: the blur hides the loss.
func blurFactor(pixels float64) int {
	switch {
	case pixels >= 12:
		return 4
	case pixels >= 4:
		return 2
	}
	return 1
}
