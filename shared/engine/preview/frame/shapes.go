package frame

import (
	"encoding/binary"
	"image"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
)

// These operations change shapes: they smooth, flatten, pixelate or draw lines.

// chroma holds luma with half-size chroma (4:2:0), the format in which smoothing is cheap.
type chroma struct{ image.YCbCr }

func (c *chroma) sized(size catalog.Size) {
	half := catalog.Size{Width: (size.Width + 1) / 2, Height: (size.Height + 1) / 2}
	c.Y = grown(c.Y, size.Width*size.Height)
	c.Cb, c.Cr = grown(c.Cb, half.Width*half.Height), grown(c.Cr, half.Width*half.Height)
	c.YStride, c.CStride = size.Width, half.Width
	c.SubsampleRatio = image.YCbCrSubsampleRatio420
	c.Rect = image.Rect(0, 0, size.Width, size.Height)
}

func (c *chroma) planes(do func(plane []uint8, width, height int, chroma bool)) {
	size := c.Rect.Size()
	do(c.Y, size.X, size.Y, false)
	do(c.Cb, c.CStride, len(c.Cb)/c.CStride, true)
	do(c.Cr, c.CStride, len(c.Cr)/c.CStride, true)
}

func (w *workspace) shrunk(size catalog.Size) *raster {
	w.small.sized(size)
	if size == w.picture.size {
		for i, plane := range w.picture.planes {
			copy(w.small.planes[i], plane)
		}
		return &w.small
	}
	s := w.scaler(w.picture.size, size)
	for i := range w.small.planes {
		s.scale(w.small.planes[i], w.picture.planes[i], w.picture.size.Width)
	}
	return &w.small
}

// shaping is an operation that changes only shapes. It works on one plane of luma or chroma; chroma
// has half the width and height.
type shaping func(w *workspace, plane []uint8, width, height int, chroma bool)

// At this radius, in pixels, and above, smoothing leaves no detail that needs full resolution.
const halvedFrom = 2

// halves reports whether the first operation leaves no fine detail.
func (p *program) halves(ops []look.Op) bool {
	return look.Softens(ops, func(s look.Smooth) bool { return p.length(s.Radius) >= halvedFrom })
}

// shapings returns the leading operations that can run on luma and chroma. Sharpening on luma and chroma is
// worthwhile only if the picture already has this format.
func (p *program) shapings(ops []look.Op, planar, whole bool) (all []shaping) {
	for i, op := range ops {
		if i > 0 && whole && p.halves(ops[i:]) {
			return all
		}
		switch op := op.(type) {
		case look.Flatten:
			all = append(all, p.flatten(op))
		case look.Smooth:
			radius := p.length(op.Radius)
			all = append(all, func(w *workspace, plane []uint8, width, height int, _ bool) {
				w.bilateral.smooth(plane, width, height, radius, op.Range)
			})
		case look.Clarity:
			if !planar && i == 0 {
				return nil
			}
			all = append(all, p.clarity(op))
		default:
			return all
		}
	}
	return all
}

// Within a patch, color differences below this are flattened; see [look.Smooth].
const chromaRange = 0.1

// flatten turns luma into flat patches. Chroma does not need the slow median, because it is small and soft.
func (p *program) flatten(op look.Flatten) shaping {
	radius, even := p.pixels(op.Radius), p.length(op.Radius)/2
	return func(w *workspace, plane []uint8, width, height int, chroma bool) {
		if chroma {
			w.bilateral.smooth(plane, width, height, even, chromaRange)
			return
		}
		w.plane = grown(w.plane, len(plane))
		median(w.plane, plane, width, height, radius)
		copy(plane, w.plane)
	}
}

// shape applies the shapings to the planes and converts the planes to the picture. If other is not nil, the
// conversion also applies these tones.
func (p *program) shape(all []shaping, other *tones) step {
	return func(w *workspace, _ time.Duration) {
		w.colors.planes(func(plane []uint8, width, height int, chroma bool) {
			for _, do := range all {
				do(w, plane, width, height, chroma)
			}
		})
		w.picture.sized(p.size)
		if other != nil {
			other.join(w.picture, &w.colors.YCbCr)
			return
		}
		w.picture.join(&w.colors.YCbCr, fullRange)
	}
}

func (p *program) divide(w *workspace, _ time.Duration) {
	from := w.picture
	if from.size != p.size {
		from = *w.shrunk(p.size)
	}
	w.colors.sized(p.size)
	from.split(&w.colors.YCbCr, fullRange)
}

func (p *program) reduce(w *workspace, _ time.Duration) {
	w.shrunk(p.size)
	w.picture, w.small = w.small, w.picture
}

func (p *program) restore(w *workspace, _ time.Duration) {
	w.other.sized(p.size)
	s := w.scaler(w.picture.size, p.size)
	for i, plane := range w.other.planes {
		s.scale(plane, w.picture.planes[i], w.picture.size.Width)
	}
	w.picture, w.other = w.other, w.picture
}

// pixelate fills each block with its mean color.
func (p *program) pixelate(op look.Pixelate) step {
	block := p.pixels(op.Block)
	width, height := p.size.Width, p.size.Height
	few := catalog.Size{Width: (width + block - 1) / block, Height: (height + block - 1) / block}
	return func(w *workspace, _ time.Duration) {
		w.small.sized(few)
		for i, plane := range w.picture.planes {
			means := w.small.planes[i]
			for y := range few.Height {
				rows := min(block, height-y*block)
				for x := range few.Width {
					columns := min(block, width-x*block)
					sum := 0
					for row := range rows {
						for _, v := range plane[(y*block+row)*width+x*block:][:columns] {
							sum += int(v)
						}
					}
					means[y*few.Width+x] = uint8(sum / (rows * columns))
				}
			}
		}
		for i, plane := range w.picture.planes {
			for y := range few.Height {
				first := plane[y*block*width:][:width]
				for x, mean := range w.small.planes[i][y*few.Width:][:few.Width] {
					square := first[x*block : min((x+1)*block, width)]
					for at := range square {
						square[at] = mean
					}
				}
				for row := 1; row < min(block, height-y*block); row++ {
					copy(plane[(y*block+row)*width:], first)
				}
			}
		}
	}
}

func (p *program) clarity(op look.Clarity) shaping {
	sharpen := newSharpener(op.Amount).apply
	return func(w *workspace, plane []uint8, width, height int, chroma bool) {
		length := p.length(op.Radius)
		if chroma {
			length /= 2
		}
		factor := blurFactor(length)
		radius := max(1, int(length/float64(factor)+0.5))
		if factor == 1 {
			w.plane = grown(w.plane, len(plane))
			copy(w.plane, plane)
			w.blur.box(w.plane, width, height, radius)
			sharpen(plane, w.plane)
			return
		}
		size := catalog.Size{Width: width, Height: height}
		small := catalog.Size{Width: max(1, width/factor), Height: max(1, height/factor)}
		w.plane = grown(w.plane, small.Width*small.Height)
		w.scaler(size, small).scale(w.plane, plane, width)
		w.blur.box(w.plane, small.Width, small.Height, radius)
		w.over(plane, size, w.plane, small, sharpen)
	}
}

// sharpener amplifies a plane's difference from its blurred copy.
type sharpener struct {
	// These are the weights of the plane and of the blurred plane, in units of 1/(1<<sharpBits).
	sharp, wide uint64
	// The blurred plane is added with inverted bits. ground is a bias that keeps this weighted sum from going
	// negative. zero replaces it with the bias that the clipping needs.
	ground, zero uint64
}

const (
	sharpBits = 6
	// maxWide is the largest weight whose sums fit in the lanes.
	maxWide = 96
)

func newSharpener(amount float64) sharpener {
	wide := uint64(min(amount*(1<<sharpBits)+0.5, maxWide))
	above := wide*255>>sharpBits + 1
	return sharpener{
		sharp: 1<<sharpBits + wide, wide: wide,
		ground: (1<<(sharpBits-1) + above<<sharpBits - wide*255) * lanesOf1, zero: (1<<15 - above) * lanesOf1,
	}
}

func (s sharpener) apply(plane, blurred []uint8) {
	blurred = blurred[:len(plane)]
	for len(plane) >= 8 {
		a, b := binary.LittleEndian.Uint64(plane), ^binary.LittleEndian.Uint64(blurred)
		even, odd := s.lanes(a&evenBytes, b&evenBytes), s.lanes(a>>8&evenBytes, b>>8&evenBytes)
		binary.LittleEndian.PutUint64(plane, even|odd<<8)
		plane, blurred = plane[8:], blurred[8:]
	}
	for i, v := range plane {
		plane[i] = uint8(s.lanes(uint64(v), uint64(^blurred[i])))
	}
}

// lanes sharpens four levels and clips them like [added].
func (s sharpener) lanes(levels, turned uint64) uint64 {
	const low10 = 0x03ff03ff03ff03ff
	sums := (levels*s.sharp+turned*s.wide+s.ground)>>sharpBits&low10 + s.zero
	least, most := sums>>15&lanesOf1, (sums>>8|sums>>9)&lanesOf1
	return (sums | most*255) & (least * 255)
}

// over enlarges a smaller plane. It calls the function `combine` with each line of the plane and the corresponding
// enlarged line.
func (w *workspace) over(plane []uint8, size catalog.Size, from []uint8, small catalog.Size,
	combine func(line, other []uint8),
) {
	if size == small {
		combine(plane, from)
		return
	}
	s := w.scaler(small, size)
	s.begin(from, small.Width)
	w.row = grown(w.row, size.Width)
	for y := range size.Height {
		s.line(w.row, from, small.Width, y)
		combine(plane[y*size.Width:][:size.Width], w.row)
	}
}

func (p *program) sharpened(op look.Clarity) step {
	do := p.clarity(op)
	return func(w *workspace, _ time.Duration) {
		for _, plane := range w.picture.planes {
			do(w, plane, p.size.Width, p.size.Height, false)
		}
	}
}

// lines draws lines on a picture of the program's size. It detects them at the size of `found`, because a picture
// smoothed at half size has no finer lines.
func (p *program) lines(op look.Lines, found *program) step {
	var biased [256]uint8
	bias := 255 * look.LinesBias
	for v := range biased {
		biased[v] = uint8((float64(v)+bias)/(255+bias)*255 + 0.5)
	}
	// inks holds each channel's factor, indexed by the ratio of a pixel to its surroundings. From the index clear on,
	// the factor is 1.
	var inks [3][256]uint8
	clear := 0
	for v := range 256 {
		share := min(max((float64(v)/255-op.From)/(op.To-op.From), 0), 1)
		curve := share * share * (3 - 2*share)
		for channel, ink := range op.Ink {
			inks[channel][v] = uint8(255*(ink+(1-ink)*curve) + 0.5)
			if inks[channel][v] < 255 {
				clear = v + 1
			}
		}
	}
	// The ratio is 255 x fine / wide; inverse replaces the division.
	var inverse [256]uint32
	for v := 1; v < 256; v++ {
		inverse[v] = (255 << 16) / uint32(v)
	}
	radius := found.pixels(op.Width)
	var fill *table
	early := false
	if op.Fill != nil {
		fill = newTable(op.Fill)
		early = found == p || op.Fill.Gentle()
	}
	return func(w *workspace, at time.Duration) {
		pixels := found.size.Width * found.size.Height
		w.ratios, w.plane = grown(w.ratios, pixels), grown(w.plane, pixels)
		ratios, wide := w.ratios, w.plane
		w.picture.gray(ratios)
		for i, v := range ratios {
			ratios[i] = biased[v]
		}
		copy(wide, ratios)
		w.blur.box(wide, found.size.Width, found.size.Height, radius)
		for i, v := range wide {
			if v == 0 {
				ratios[i] = 255
				continue
			}
			ratios[i] = uint8(min((uint32(ratios[i])*inverse[v])>>16, 255))
		}
		if early {
			fill.apply(w.picture)
		}
		if found != p {
			p.restore(w, at)
		}
		if fill != nil && !early {
			fill.apply(w.picture)
		}
		line := 0
		red, green, blue := w.picture.planes[0], w.picture.planes[1], w.picture.planes[2]
		w.over(red, p.size, ratios, found.size, func(reds, ratios []uint8) {
			greens, blues, ratios := green[line:][:len(reds)], blue[line:][:len(reds)], ratios[:len(reds)]
			line += len(reds)
			for i, ratio := range ratios {
				if int(ratio) >= clear {
					continue
				}
				reds[i] = multiplied(reds[i], inks[0][ratio])
				greens[i] = multiplied(greens[i], inks[1][ratio])
				blues[i] = multiplied(blues[i], inks[2][ratio])
			}
		})
	}
}

func multiplied(a, b uint8) uint8 {
	v := uint32(a) * uint32(b)
	return uint8((v + 1 + v>>8) >> 8)
}

// blurFactor returns the factor by which a picture may shrink before a blur whose radius is given in pixels. The blur
// hides the loss.
func blurFactor(pixels float64) int {
	switch {
	case pixels >= 12:
		return 4
	case pixels >= 4:
		return 2
	}
	return 1
}
